//! Jobs: periodic work done by a single node at a time.
//!
//! The ledger keeps the schedule and the lock of each job. A [`Runner`] is the worker of a job: the runner
//! takes a run, extends the lock by heartbeats and does the work. A job writes to the ledger under the
//! fencing token of the run. Effects elsewhere must be idempotent. To add a job, name it in the ledger's
//! `JobName`, implement [`Job`], and start the job in [`start`].

mod board;
mod clock;
mod housekeeping;
mod lock;
mod retention;
mod roster;
mod runner;
mod session_expiry;
mod trusted_clock;

use std::sync::Arc;

use async_trait::async_trait;
use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::jobs::{Fence, JobName};

use crate::error::Error;
use crate::metrics::JobMetrics;
use crate::settings::Settings;
use board::Board;
pub(crate) use clock::JobClock;
use housekeeping::Housekeeping;
use retention::Retention;
pub(crate) use roster::Roster;
use runner::{Pace, Runner};
use seatkeeper_engine::Registries;
use seatkeeper_engine::WorkerSet;
use session_expiry::SessionExpiry;
pub(crate) use trusted_clock::TrustedClock;

/// Interval between two searches for usage batches that are due for a retry. An emission schedules a run by
/// itself.
pub(crate) const USAGE_DELIVERY_INTERVAL: Span = Span::from_secs(5);

/// Interval between two searches for moves of homes that were cut off.
pub(crate) const MOVES_INTERVAL: Span = Span::from_secs(5);

/// A kind of periodic work.
#[async_trait]
pub(crate) trait Job: Send + Sync + 'static {
    fn name(&self) -> JobName;

    /// Returns the interval between two runs.
    fn interval(&self) -> Span;

    /// Does all work that is due. The future is dropped at any `await` if the run loses its lock or the
    /// server stops. A later run then starts from the beginning.
    async fn run(&self, fence: &Fence) -> Result<(), Error>;

    /// Returns whether the job runs only while the clock is steady, because it deletes records by age.
    fn needs_steady_clock(&self) -> bool {
        false
    }
}

/// Returns a job's interval under `settings`, also for a job that `settings` give no work.
pub(crate) fn interval_of(name: JobName, settings: &Settings) -> Span {
    match name {
        JobName::UsageEmission => Span::from_secs(settings.usage.emission_interval_seconds),
        JobName::UsageDelivery => USAGE_DELIVERY_INTERVAL,
        JobName::SessionExpiry => session_expiry::INTERVAL,
        JobName::Retention => retention::INTERVAL,
        JobName::Housekeeping => housekeeping::INTERVAL,
        JobName::Moves => MOVES_INTERVAL,
    }
}

/// Starts the jobs that need no sink: session expiry, housekeeping, and retention if configured. A job new to the
/// ledger is due at `now`.
pub(crate) async fn start(
    settings: &Settings,
    registries: &Registries,
    ledger: &Ledger,
    workers: &WorkerSet,
    metrics: &JobMetrics,
    now: RegistryTime,
) -> Result<Roster, seatkeeper_ledger::Error> {
    let backend = registries.for_capacities();
    let registry = Arc::clone(&backend.registry);
    let clock = match registries.has_own_clock() {
        true => JobClock::of_process(registry),
        false => JobClock::of_server(registry),
    };
    let clock = Arc::new(clock);
    let trusted = TrustedClock::start(Arc::clone(&clock), ledger.clone(), now).await?;
    let trusted = Arc::new(trusted);
    let mut roster = Roster::new(clock, Arc::clone(&trusted), ledger.clone(), metrics.clone());
    roster.start(SessionExpiry { backends: registries.all().cloned().collect() }, workers, now).await?;
    let housekeeping = Housekeeping { clock: Arc::clone(&trusted), ledger: ledger.clone() };
    roster.start(housekeeping, workers, now).await?;
    if let Some(max_age) = settings.ledger.max_age() {
        let retention = Retention { clock: trusted, ledger: ledger.clone(), max_age };
        roster.start(retention, workers, now).await?;
    }
    Ok(roster)
}
