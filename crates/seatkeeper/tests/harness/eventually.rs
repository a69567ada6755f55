//! Polling for a condition, with a deadline, in synchronous tests.

use std::thread;
use std::time::{Duration, Instant};

/// Time limit, long enough for a machine that is busy with other tests.
const DEADLINE: Duration = Duration::from_secs(30);

/// Pause between two polls.
const PAUSE: Duration = Duration::from_millis(20);

/// Polls `look` until it returns `Ok`. Fails the test with the last `Err` state at the deadline.
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let started = Instant::now();
    loop {
        match look() {
            Ok(value) => return value,
            Err(state) if started.elapsed() > DEADLINE => {
                panic!("not within {DEADLINE:?}: {what}. It was: {state}")
            }
            Err(_) => thread::park_timeout(PAUSE),
        }
    }
}
