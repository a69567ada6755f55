//! Retries of a rebuild's steps within one epoch. A registry that loses answers or is slow would otherwise
//! cost an epoch for each lost answer.

use std::time::{Duration, Instant};

use seatkeeper_registry::Error as RegistryError;

use crate::error::Error;

/// A rebuild of a bucket gives up this long after its begin. The next rebuild raises the epoch again.
const GIVES_UP_AFTER: Duration = Duration::from_secs(60);

/// The first pause before a repeated step. The pause doubles with each failure in a row, up to [`PAUSE_MAX`].
const PAUSE_MIN: Duration = Duration::from_millis(50);

/// The longest pause before a repeated step. Service returns at most this time after the registry does.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// Returns whether a registry did not answer.
pub(super) fn is_silence(error: &Error) -> bool {
    matches!(error, Error::Registry(RegistryError::Unavailable(_) | RegistryError::TimedOut))
}

/// The retries of one bucket's rebuild.
pub(super) struct Retries {
    began: Instant,
    pause: Duration,
}

impl Retries {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), pause: PAUSE_MIN }
    }

    /// Notes a successful step: the next failure is the first in a row.
    pub(super) fn reset(&mut self) {
        self.pause = PAUSE_MIN;
    }

    /// Pauses before a repetition of the failed step. Returns the error if the step must not be repeated: unless
    /// `is_wanted`, unless a registry did not answer, or 60 s after the begin.
    ///
    /// Every step of a rebuild is idempotent within the rebuild's epoch. A failure of the ledger is not retried:
    /// meanwhile this node would keep other nodes from going on without the ledger.
    pub(super) async fn wait(&mut self, is_wanted: bool, error: Error) -> Result<(), Error> {
        if !is_wanted || !is_silence(&error) || self.began.elapsed() >= GIVES_UP_AFTER {
            return Err(error);
        }
        tracing::debug!(
            error = &error as &dyn std::error::Error,
            "the registry did not answer a step of a rebuild: the step is repeated"
        );
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Ok(())
    }
}
