//! Polling for a condition, with a deadline, in asynchronous tests.

use std::time::{Duration, Instant};

/// Default deadline, long enough for a machine that is busy with other tests.
const DEADLINE: Duration = Duration::from_secs(30);

/// Pause between two polls.
const PAUSE: Duration = Duration::from_millis(20);

/// Polls `look` until it returns `Ok`. Fails the test with the last `Err` state at the default deadline.
pub(crate) async fn until<T>(what: &str, look: impl AsyncFnMut() -> Result<T, String>) -> T {
    within(DEADLINE, what, look).await
}

/// Polls `look` until it returns `Ok`. Fails the test with the last `Err` state at `deadline`.
pub(crate) async fn within<T>(
    deadline: Duration,
    what: &str,
    mut look: impl AsyncFnMut() -> Result<T, String>,
) -> T {
    let started = Instant::now();
    loop {
        match look().await {
            Ok(value) => return value,
            Err(state) if started.elapsed() > deadline => {
                panic!("not within {deadline:?}: {what}. It was: {state}")
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
