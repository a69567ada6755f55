//! Takes the ledger for an embedded engine, and keeps nodes with a shared registry off the ledger of an embedded engine.

use std::time::{Duration, Instant};

use seatkeeper_host_clock::HostInstant;
use seatkeeper_ledger::{Error, Ledger, SoleUse};
use tokio::time::sleep;

/// The longest wait for the previous process. PostgreSQL notices a killed process at once, and a lost machine by keepalives
/// within 25 s.
const PREDECESSOR_WAIT_MAX: Duration = Duration::from_secs(30);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(200);

/// Takes the ledger for this process alone. Waits up to [`PREDECESSOR_WAIT_MAX`] for the end of the present owner.
/// Returns the sole use, and an instant before its raise of the epochs.
pub(super) async fn take_alone(ledger: &Ledger) -> Result<(SoleUse, HostInstant), Error> {
    let registry_identity = uuid::Uuid::new_v4().to_string();
    let registry_identity = registry_identity.as_str();
    let take = || async move {
        let began = HostInstant::now();
        Ok((ledger.take_alone(registry_identity, rand::random()).await?, began))
    };
    once_unused(take).await
}

/// Waits up to [`PREDECESSOR_WAIT_MAX`] for the end of an embedded engine on the ledger.
pub(super) async fn wait_for_sole_user(ledger: &Ledger) -> Result<(), Error> {
    once_unused(|| ledger.check_shareable()).await
}

/// Repeats `attempt` while another process uses the ledger alone.
async fn once_unused<T, F>(attempt: impl Fn() -> F) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let began = Instant::now();
    let mut is_told = false;
    loop {
        match attempt().await {
            Err(Error::InUse) if began.elapsed() < PREDECESSOR_WAIT_MAX => {}
            done => return done,
        }
        if !is_told {
            tracing::warn!(
                wait_max_seconds = PREDECESSOR_WAIT_MAX.as_secs(),
                "another process uses this ledger, with the live sessions in its memory: this process waits for its end"
            );
            is_told = true;
        }
        sleep(PAUSE).await;
    }
}
