//! Circuit breaker for look-ups of subscribers in the ledger. Every look-up returns within a bounded time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use seatkeeper_core::{TenantId, UserId};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::subscriptions::Subscriber;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::error::Error;

/// Longest wait for a ledger that answered the previous look-up.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Longest wait for a ledger that did not answer the previous look-up.
const PROBE_WAIT_MAX: Duration = Duration::from_millis(250);

/// Looks subscribers up in the ledger. A look-up without an answer opens the circuit: a single look-up at a
/// time probes the ledger, and the rest fail at once. The first answer closes the circuit.
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

    /// Returns the ledger's record of a subscriber, or `Err(TimedOut)` after the longest wait. The statement
    /// runs on after a timeout, and a late answer closes the circuit.
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
    /// Opens or closes the circuit by the outcome of a look-up, and logs the transition.
    fn note(&self, is_answered: bool) {
        let was_open = self.is_open.swap(!is_answered, Relaxed);
        match (was_open, is_answered) {
            (false, false) => tracing::warn!(
                "the ledger does not answer look-ups of subscribers: claims use the last known limit of each pool, \
                 and no session is evicted; bring the ledger back"
            ),
            (true, true) => tracing::info!("the ledger answers look-ups of subscribers again"),
            (false, true) | (true, false) => {}
        }
    }
}

#[cfg(test)]
mod tests;
