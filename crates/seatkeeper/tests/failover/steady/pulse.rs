//! The instants at which a kind of pool was served.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The instants of every served admission, and of every served heartbeat, of a kind of pool.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    admissions: Mutex<Vec<Instant>>,
    heartbeats: Mutex<Vec<Instant>>,
}

/// The longest time without a served admission, and without a served heartbeat.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gaps {
    pub(crate) admissions: Duration,
    pub(crate) heartbeats: Duration,
}

impl Pulse {
    pub(super) fn admitted(&self) {
        push_now(&self.admissions);
    }

    pub(super) fn renewed(&self) {
        push_now(&self.heartbeats);
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

fn push_now(served: &Mutex<Vec<Instant>>) {
    // The lock keeps the instants in order.
    let mut served = lock(served);
    served.push(Instant::now());
}

fn lock(served: &Mutex<Vec<Instant>>) -> std::sync::MutexGuard<'_, Vec<Instant>> {
    served.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the longest time without service between `from` and `to`. `served` is in order.
fn longest_gap(served: &[Instant], from: Instant, to: Instant) -> Duration {
    let within = served.iter().copied().filter(|at| (from..to).contains(at));
    let (mut last, mut longest) = (from, Duration::ZERO);
    for at in within.chain([to]) {
        longest = longest.max(at - last);
        last = at;
    }
    longest
}

#[test]
fn the_longest_gap_counts_from_the_beginning_and_up_to_the_end() {
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let gap = |served: &[u64], from, to| {
        let served: Vec<_> = served.iter().map(|&seconds| at(seconds)).collect();
        longest_gap(&served, at(from), at(to)).as_secs()
    };
    assert_eq!(gap(&[], 2, 9), 7);
    assert_eq!(gap(&[1, 6, 7], 2, 9), 4);
    assert_eq!(gap(&[1, 3, 8, 20], 2, 9), 5);
    assert_eq!(gap(&[3, 4], 2, 9), 5);
}
