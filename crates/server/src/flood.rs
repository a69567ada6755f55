//! Limits the log lines that requests cause: of requests that cannot be answered now, of reads that fail beside a decision, and
//! of refused tokens of regions. While a store is away no request can be answered, and anyone can send a wrong token. A line
//! for each would fill the disk that a ledger may be on.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most lines in a [`WINDOW`].
const LINES_MAX: u32 = 10;

const WINDOW: Duration = Duration::from_secs(1);

/// The lines of the present window, and the requests without a line.
#[derive(Default)]
pub(crate) struct Flood(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    began: Option<Instant>,
    lines: u32,
    unlogged: u64,
}

impl Flood {
    /// Notes a request that causes a line. Returns `None` for a request without a line, else the number of requests without a
    /// line since the last line.
    pub(crate) fn next_line(&self, now: Instant) -> Option<u64> {
        // The counts are whole after every step, so a panic elsewhere spoils none.
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if counts.began.is_none_or(|began| now.saturating_duration_since(began) >= WINDOW) {
            counts.began = Some(now);
            counts.lines = 0;
        }
        if counts.lines == LINES_MAX {
            counts.unlogged += 1;
            return None;
        }
        counts.lines += 1;
        Some(std::mem::take(&mut counts.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_gets_a_few_lines_a_second_and_its_number_is_told() {
        let (flood, start) = (Flood::default(), Instant::now());
        let lines = |millis| {
            (0..1000)
                .filter_map(|_| flood.next_line(start + Duration::from_millis(millis)))
                .collect::<Vec<_>>()
        };
        assert_eq!(lines(0), [0; 10]);
        assert_eq!(lines(999), [0; 0]);
        let mut second = [0; 10];
        second[0] = 990 + 1000;
        assert_eq!(lines(1000), second);
        second[0] = 990;
        assert_eq!(lines(90_000), second);
    }

    #[test]
    fn a_request_now_and_then_gets_its_line() {
        let (flood, start) = (Flood::default(), Instant::now());
        for n in 0..1000 {
            assert_eq!(flood.next_line(start + Duration::from_millis(101) * n), Some(0));
        }
    }
}
