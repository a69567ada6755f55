//! The clock of irreversible work: the deletion of history, and the emission of usage.
//!
//! A clock that is wrong at the start of a server looks like a right clock after an outage, and dates events that seem
//! to confirm the clock. Trusted time follows the clock only as far as recorded trusted time and the uptime of this
//! node account for. A larger gap needs the word of an operator.

use std::sync::Arc;

use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::trusted_time::OUTAGE_MAX;

use super::JobClock;
use crate::error::Error;

/// Advance of trusted time that is worth a write to the ledger. Far below [`OUTAGE_MAX`].
const RECORDED_EVERY: Span = Span::from_secs(600);

/// The clock of irreversible work.
pub(crate) struct TrustedClock {
    clock: Arc<JobClock>,
    ledger: Ledger,
    /// Registry time at the start of this node.
    started_at: RegistryTime,
    /// Trusted time on record at the start of this node.
    trusted_at_start: RegistryTime,
}

impl TrustedClock {
    /// Creates the clock at the start of this node, before the node records an event. `now` is the registry's time.
    pub(crate) async fn start(
        clock: Arc<JobClock>,
        ledger: Ledger,
        now: RegistryTime,
    ) -> Result<Self, seatkeeper_ledger::Error> {
        let trusted_at_start = ledger.trusted_time_at_start(now).await?;
        Ok(Self { clock, ledger, started_at: now, trusted_at_start })
    }

    /// Returns the latest time that the emission of usage may go by: the registry's time, or an earlier time while the
    /// registry's time is unconfirmed. Returns `Err(ClockUnsettled)` if registry time stands still, or the clock has
    /// stepped within `CLOCK_SETTLING`.
    pub(crate) async fn read(&self) -> Result<RegistryTime, Error> {
        self.trusted_at(self.clock.read_to_schedule().await?).await
    }

    /// Returns the time of [`read`](Self::read) for the deletion of history. Returns `Err(ClockUnsettled)` until the
    /// clock has been steady for `CLOCK_SETTLING`.
    pub(crate) async fn read_steady(&self) -> Result<RegistryTime, Error> {
        self.trusted_at(self.clock.read_steady().await?).await
    }

    async fn trusted_at(&self, now: RegistryTime) -> Result<RegistryTime, Error> {
        let recorded = self.ledger.trusted_time().await.map_err(Error::Ledger)?.unwrap_or_default();
        let counted = recorded.max(self.trusted_at_start + self.clock.uptime(self.started_at, now));
        let trusted = trusted(now, counted);
        if trusted < now {
            report(now, trusted);
        }
        if trusted >= recorded + RECORDED_EVERY {
            self.ledger.advance_trusted_time(trusted).await.map_err(Error::Ledger)?;
        }
        Ok(trusted)
    }
}

fn report(now: RegistryTime, trusted: RegistryTime) {
    tracing::error!(
        ahead_ms = now.since(trusted).as_millis(),
        "registry time is more than a day ahead of the time accounted for: history is deleted, and usage metered, by \
         the earlier time; if the clock is right after a long outage, run `seatkeeper repair clock --apply`; if the \
         clock is wrong, stop all nodes, set the clock, and run the same command"
    );
}

/// Returns the time to trust at `now`, if recorded time and uptime account for `counted`.
fn trusted(now: RegistryTime, counted: RegistryTime) -> RegistryTime {
    if now <= counted + OUTAGE_MAX { now } else { counted }
}

#[cfg(test)]
mod tests;
