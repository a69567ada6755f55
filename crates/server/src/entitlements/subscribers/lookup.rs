//! Look-ups of subscribers in the ledger, each answered within a bounded time: a circuit breaker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use seatkeeper_core::{TenantId, UserId};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::subscriptions::Subscriber;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::error::Error;

/// The longest wait for a ledger that answered last time.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The longest wait for a ledger that did not answer last time.
const PROBE_WAIT_MAX: Duration = Duration::from_millis(250);

/// Looks subscribers up in the ledger. After a look-up without an answer the circuit is open: one look-up at a time
/// probes the ledger, and all others fail at once. Any answer closes the circuit.
pub(super) struct Lookup {
    ledger: Ledger,
    breaker: Arc<Breaker>,
}

struct Breaker {
    is_open: AtomicBool,
    probes: Arc<Semaphore>,
}

impl Lookup {
    pub(super) fn new(ledger: Ledger) -> Self {
        let breaker = Breaker { is_open: AtomicBool::new(false), probes: Arc::new(Semaphore::new(1)) };
        Self { ledger, breaker: Arc::new(breaker) }
    }

    /// Returns what the ledger has of a subscriber, or `Err(TimedOut)` once the wait is over. The statement itself
    /// then goes on, and closes the circuit if it is answered after all.
    pub(super) async fn subscriber(&self, tenant: &TenantId, user: &UserId) -> Result<Subscriber, Error> {
        let (wait_max, probe) = if self.breaker.is_open.load(Relaxed) {
            let probe = Arc::clone(&self.breaker.probes).try_acquire_owned();
            (PROBE_WAIT_MAX, Some(probe.map_err(|_| Error::TimedOut)?))
        } else {
            (WAIT_MAX, None)
        };
        let (ledger, breaker) = (self.ledger.clone(), Arc::clone(&self.breaker));
        let (tenant, user) = (tenant.clone(), user.clone());
        let asking = tokio::spawn(async move {
            let answer = ledger.subscriber(&tenant, &user).await;
            breaker.note(!matches!(answer, Err(seatkeeper_ledger::Error::Unavailable(_))));
            drop(probe);
            answer
        });
        match timeout(wait_max, asking).await {
            Ok(answer) => answer?.map_err(Error::Ledger),
            Err(_) => {
                self.breaker.note(false);
                Err(Error::TimedOut)
            }
        }
    }
}

impl Breaker {
    /// Notes a look-up that was answered, or was not.
    fn note(&self, is_answered: bool) {
        let was_open = self.is_open.swap(!is_answered, Relaxed);
        match (was_open, is_answered) {
            (false, false) => tracing::warn!(
                "the ledger does not answer look-ups of subscribers: claims go by the limit that each pool knew \
                 last, and nobody is evicted; bring the ledger back"
            ),
            (true, true) => tracing::info!("the ledger answers look-ups of subscribers again"),
            (false, true) | (true, false) => {}
        }
    }
}

#[cfg(test)]
mod tests;
