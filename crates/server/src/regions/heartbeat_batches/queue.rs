//! The queue of a peer: decides when the next batch is sent. No I/O and no clock.

use std::time::Duration;

/// Shortest time between two batches for a peer, unless a batch is full: 20 requests a second.
const INTERVAL: Duration = Duration::from_millis(50);

/// Heartbeats in a full batch. With [`INTERVAL`], 33,000 heartbeats a second need at most 20 + 17 requests at one node, and 60 at
/// three nodes.
pub(crate) const BEATS_MAX: usize = 2_000;

/// Bytes of a full batch. The last heartbeat of a batch may exceed the number.
pub(super) const BYTES_MAX: usize = 1024 * 1024;

/// The heartbeats that wait for a batch.
pub(super) struct BatchQueue<T> {
    waiting: Vec<T>,
    bytes: usize,
    sent: Option<Duration>,
    /// The time at which the owner calls [`BatchQueue::wake`].
    wake_at: Option<Duration>,
}

/// The next step of the owner of a queue.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step<T> {
    /// Send this batch now.
    Send(Vec<T>),
    /// Call [`BatchQueue::wake`] at this time.
    WakeAt(Duration),
    /// Nothing: an earlier step provides for the queue.
    Wait,
}

impl<T> Default for BatchQueue<T> {
    fn default() -> Self {
        Self { waiting: Vec::new(), bytes: 0, sent: None, wake_at: None }
    }
}

impl<T> BatchQueue<T> {
    /// Adds a heartbeat of `bytes` bytes.
    pub(super) fn push(&mut self, heartbeat: T, bytes: usize, now: Duration) -> Step<T> {
        self.waiting.push(heartbeat);
        self.bytes += bytes;
        if self.waiting.len() >= BEATS_MAX || self.bytes >= BYTES_MAX {
            return Step::Send(self.take(now));
        }
        // A wake-up that is long overdue is lost, and must not keep the queue waiting.
        if self.wake_at.is_some_and(|wake_at| now < wake_at + INTERVAL) {
            return Step::Wait;
        }
        self.send_or_wake(now)
    }

    /// Returns the next step at the time that [`Step::WakeAt`] named.
    pub(super) fn wake(&mut self, now: Duration) -> Step<T> {
        self.wake_at = None;
        if self.waiting.is_empty() { Step::Wait } else { self.send_or_wake(now) }
    }

    fn send_or_wake(&mut self, now: Duration) -> Step<T> {
        let due = self.sent.map_or(now, |sent| sent + INTERVAL);
        if due <= now {
            self.wake_at = None;
            return Step::Send(self.take(now));
        }
        self.wake_at = Some(due);
        Step::WakeAt(due)
    }

    fn take(&mut self, now: Duration) -> Vec<T> {
        self.sent = Some(now);
        self.bytes = 0;
        std::mem::take(&mut self.waiting)
    }
}

#[cfg(test)]
mod tests;
