//! The pauses of a stream reader: after a break, and after a join.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::SessionList;

/// The longest pause before the second try. Every later try doubles the pause.
const BACKOFF_FIRST: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// A stream that was open this long starts the backoff anew.
const LIFE: Duration = Duration::from_secs(60);
/// The pause between a join of a session and the opening with the longer list: seats that are acquired together cost one
/// opening.
pub(super) const JOIN_PAUSE: Duration = Duration::from_millis(100);
/// The pause under steady joins.
const JOIN_PAUSE_MAX: Duration = Duration::from_millis(1_600);
/// A join this soon after a reopening has twice the pause of that reopening.
const STEADY: Duration = Duration::from_secs(2);

/// The backoff of a stream.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
    /// The first opening since the last break. A reopening for a join is no break.
    open_since: Option<Instant>,
}

impl Backoff {
    /// Notes that the server has accepted the stream.
    pub(super) fn note_opening(&mut self, now: Instant) {
        self.open_since.get_or_insert(now);
    }

    /// Notes a break, and returns the pause before the next try, with full jitter: up to 1 s, 2 s, 4 s … 60 s.
    pub(super) fn note_break(&mut self, now: Instant, jitter: f64) -> Duration {
        if self.open_since.take().is_some_and(|since| now.duration_since(since) >= LIFE) {
            self.failures = 0;
        }
        let longest = BACKOFF_FIRST.saturating_mul(1 << self.failures.min(16)).min(BACKOFF_MAX);
        self.failures = self.failures.saturating_add(1);
        longest.mul_f64(jitter)
    }
}

/// The pauses between joins and reopenings. Steady joins lengthen the pauses, so that
/// joins do not cut each opening in turn.
#[derive(Debug)]
pub(super) struct JoinPauses {
    /// The last reopening for a join.
    reopened: Option<Instant>,
    /// The pause after a join that follows [`reopened`](Self::reopened) within [`STEADY`].
    next: Duration,
}

impl JoinPauses {
    pub(super) fn new() -> Self {
        Self { reopened: None, next: JOIN_PAUSE }
    }

    /// Waits until a join makes the open request about `open` stale, and for the pause after the join. A session that joined
    /// and left within the pause makes no request stale.
    pub(super) async fn stale(&mut self, list: &mut watch::Receiver<SessionList>, open: &[Arc<str>]) {
        loop {
            if list.changed().await.is_err() {
                // The driver has closed the stream, and aborts the reader.
                std::future::pending::<()>().await;
            }
            let pause = self.pause(Instant::now());
            sleep(pause).await;
            let is_stale = list.borrow_and_update().sessions.iter().any(|session| !open.contains(session));
            if is_stale {
                self.note_reopening(Instant::now(), pause);
                return;
            }
        }
    }

    /// Returns the pause after a join at `now`.
    fn pause(&self, now: Instant) -> Duration {
        let is_steady = self.reopened.is_some_and(|at| now.duration_since(at) < STEADY);
        if is_steady { self.next } else { JOIN_PAUSE }
    }

    /// Notes a reopening after `pause`.
    fn note_reopening(&mut self, now: Instant, pause: Duration) {
        self.reopened = Some(now);
        self.next = (pause * 2).min(JOIN_PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_backoff_doubles_to_a_minute_with_full_jitter() {
        let (mut backoff, now) = (Backoff::default(), Instant::now());
        let longest = [(); 9].map(|()| backoff.note_break(now, 1.0).as_secs());
        assert_eq!(longest, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(backoff.note_break(now, 0.5), 30 * SECOND);
        assert_eq!(backoff.note_break(now, 0.0), Duration::ZERO);
        backoff.failures = u32::MAX;
        assert_eq!(backoff.note_break(now, 1.0), 60 * SECOND);
    }

    #[test]
    fn the_backoff_starts_anew_after_a_minute_across_reopenings() {
        let (mut backoff, began) = (Backoff::default(), Instant::now());
        let mut open_for = |openings: &[u32], broken: u32| {
            openings.iter().for_each(|second| backoff.note_opening(began + SECOND * *second));
            backoff.note_break(began + SECOND * broken, 1.0).as_secs()
        };
        assert_eq!(open_for(&[0, 20, 40], 59), 1);
        assert_eq!(open_for(&[100, 120, 140], 159), 2, "the stream was open for less than a minute");
        assert_eq!(open_for(&[], 300), 4, "a break resets the time");
        assert_eq!(open_for(&[400, 420, 440], 460), 1);
    }

    #[test]
    fn steady_joins_double_the_pause_and_a_calm_ends_the_doubling() {
        let (mut joins, mut now) = (JoinPauses::new(), Instant::now());
        let mut join_after = |calm: Duration| {
            now += calm;
            let pause = joins.pause(now);
            now += pause;
            joins.note_reopening(now, pause);
            pause.as_millis()
        };
        let steady = [(); 7].map(|()| join_after(SECOND));
        assert_eq!(steady, [100, 200, 400, 800, 1_600, 1_600, 1_600]);
        assert_eq!(join_after(2 * SECOND), 100);
        assert_eq!(join_after(SECOND), 200);
    }
}
