//! Circuit breaker for look-ups in the ledger. Every look-up returns within a bounded time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use seatkeeper_ledger::{Error as LedgerError, Ledger};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::error::Error;

/// Longest wait for a ledger that answered the previous look-up.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// Longest wait for a ledger that did not answer the previous look-up.
const PROBE_WAIT_MAX: Duration = Duration::from_millis(250);

/// A ledger whose look-ups pass a circuit breaker. A look-up without an answer opens the circuit: a single look-up at a
/// time probes the ledger, and the rest fail at once. The first answer closes the circuit.
pub(crate) struct LedgerBreaker {
    ledger: Ledger,
    circuit: Arc<Circuit>,
}

struct Circuit {
    /// The consequence of an open circuit, for the log.
    consequence: &'static str,
    is_open: AtomicBool,
    probes: Arc<Semaphore>,
}

impl LedgerBreaker {
    /// Returns a closed circuit. The log names the `consequence` when the circuit opens.
    pub(crate) fn new(ledger: Ledger, consequence: &'static str) -> Self {
        let probes = Arc::new(Semaphore::new(1));
        let circuit = Circuit { consequence, is_open: AtomicBool::new(false), probes };
        Self { ledger, circuit: Arc::new(circuit) }
    }

    /// Returns the result of a look-up, or `Err(TimedOut)` after the longest wait. The statement runs on after a timeout,
    /// and a late answer closes the circuit.
    pub(crate) async fn ask<T, F>(&self, look_up: impl FnOnce(Ledger) -> F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, LedgerError>> + Send + 'static,
    {
        let (wait_max, probe) = if self.circuit.is_open.load(Relaxed) {
            let probe = Arc::clone(&self.circuit.probes).try_acquire_owned();
            (PROBE_WAIT_MAX, Some(probe.map_err(|_| Error::TimedOut)?))
        } else {
            (WAIT_MAX, None)
        };
        let (look_up, circuit) = (look_up(self.ledger.clone()), Arc::clone(&self.circuit));
        let asking = tokio::spawn(async move {
            let answer = look_up.await;
            circuit.note(!matches!(answer, Err(LedgerError::Unavailable(_))));
            drop(probe);
            answer
        });
        match timeout(wait_max, asking).await {
            Ok(answer) => answer?.map_err(Error::Ledger),
            Err(_) => {
                self.circuit.note(false);
                Err(Error::TimedOut)
            }
        }
    }
}

impl Circuit {
    /// Opens or closes the circuit by the outcome of a look-up, and logs the transition.
    fn note(&self, is_answered: bool) {
        let was_open = self.is_open.swap(!is_answered, Relaxed);
        match (was_open, is_answered) {
            (false, false) => tracing::warn!(
                consequence = self.consequence,
                "the ledger does not answer look-ups; bring the ledger back"
            ),
            (true, true) => tracing::info!("the ledger answers look-ups again"),
            (false, true) | (true, false) => {}
        }
    }
}

#[cfg(test)]
mod tests;
