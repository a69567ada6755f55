//! Waiting for the server, with a deadline.

use std::time::{Duration, Instant};

/// Long enough for a machine that is busy with other tests.
const DEADLINE: Duration = Duration::from_secs(30);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);

/// Looks until `look` gives a value; fails the test with the last state seen if it never does.
pub(crate) async fn until<T>(what: &str, look: impl AsyncFnMut() -> Result<T, String>) -> T {
    within(DEADLINE, what, look).await
}

/// Likewise, with a deadline of its own.
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
