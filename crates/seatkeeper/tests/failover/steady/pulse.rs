//! The requests of a kind of pool, and the times without service.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::requests::Requests;

/// Every request of a kind of pool, every served admission, and every served heartbeat.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    pub(super) requests: Requests,
    admissions: Mutex<Vec<Served>>,
    heartbeats: Mutex<Vec<Served>>,
}

/// A served request.
#[derive(Clone, Copy, Debug)]
struct Served {
    /// The instant of the first attempt.
    asked: Instant,
    answered: Instant,
}

/// The longest times without a served admission, and without a served heartbeat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gaps {
    pub(crate) admissions: Gap,
    pub(crate) heartbeats: Gap,
}

/// The longest times without service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gap {
    /// The longest time in which a request waited and no request was served.
    pub(crate) waiting: Duration,
    /// The longest time in which no request was served, waiting or not.
    pub(crate) silence: Duration,
}

impl Pulse {
    /// Notes an admission whose first attempt was at `asked`.
    pub(super) fn admitted(&self, asked: Instant) {
        push_now(&self.admissions, asked);
    }

    /// Notes a heartbeat whose first attempt was at `asked`.
    pub(super) fn renewed(&self, asked: Instant) {
        push_now(&self.heartbeats, asked);
    }

    /// Returns the number of admissions and heartbeats served so far.
    pub(super) fn counts(&self) -> [u64; 2] {
        [&self.admissions, &self.heartbeats].map(|served| lock(served).len() as u64)
    }

    pub(super) fn gaps(&self, from: Instant, to: Instant) -> Gaps {
        let [admissions, heartbeats] =
            [&self.admissions, &self.heartbeats].map(|served| longest_gap(&lock(served), from, to));
        Gaps { admissions, heartbeats }
    }
}

fn push_now(served: &Mutex<Vec<Served>>, asked: Instant) {
    // The lock keeps the answers in order.
    let mut served = lock(served);
    served.push(Served { asked, answered: Instant::now() });
}

fn lock(served: &Mutex<Vec<Served>>) -> std::sync::MutexGuard<'_, Vec<Served>> {
    served.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the longest times without service between `from` and `to`. `served` is in the order of answers.
fn longest_gap(served: &[Served], from: Instant, to: Instant) -> Gap {
    let (mut longest, mut until) = (Gap::default(), to);
    // The first attempt of the requests that were answered at `until` or later.
    let mut waiting = None;
    for request in served.iter().rev() {
        if request.answered < from {
            break;
        }
        if request.answered < to {
            longest.extend(request.answered, waiting, until);
            until = request.answered;
        }
        waiting = Some(waiting.map_or(request.asked, |asked| request.asked.min(asked)));
    }
    longest.extend(from, waiting, until);
    longest
}

impl Gap {
    /// Counts a time without service. `waiting` is the first attempt of the requests answered later.
    fn extend(&mut self, from: Instant, waiting: Option<Instant>, until: Instant) {
        self.silence = self.silence.max(until - from);
        if let Some(asked) = waiting {
            self.waiting = self.waiting.max(until.saturating_duration_since(from.max(asked)));
        }
    }
}

#[test]
fn the_longest_gap_counts_from_the_beginning_and_up_to_the_end_while_a_request_waits() {
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let gap = |served: &[(u64, u64)], from, to| {
        let served =
            served.iter().map(|&(asked, answered)| Served { asked: at(asked), answered: at(answered) });
        let gap = longest_gap(&served.collect::<Vec<_>>(), at(from), at(to));
        (gap.waiting.as_secs(), gap.silence.as_secs())
    };
    assert_eq!(gap(&[], 2, 9), (0, 7), "no request waits");
    assert_eq!(gap(&[(0, 20)], 2, 9), (7, 7));
    assert_eq!(gap(&[(5, 20)], 2, 9), (4, 7));
    assert_eq!(gap(&[(10, 20)], 2, 9), (0, 7));
    assert_eq!(gap(&[(0, 1), (0, 6), (6, 7)], 2, 9), (4, 4));
    assert_eq!(gap(&[(0, 3), (3, 8), (8, 20)], 2, 9), (5, 5));
    assert_eq!(gap(&[(0, 3), (7, 8), (8, 20)], 2, 9), (1, 5));
    assert_eq!(gap(&[(0, 3), (7, 8), (4, 20)], 2, 9), (4, 5));
    assert_eq!(gap(&[(0, 3), (3, 4), (4, 20)], 2, 9), (5, 5));
}
