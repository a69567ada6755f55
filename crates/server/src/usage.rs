//! Usage of capacities: metered in windows, and delivered to the operator's sink.
//!
//! The job `Emission` records windows, and the job `Delivery` sends their batches until the sink accepts
//! them. The module `sink` writes batches and reads replies; the module `verdict` decides from a reply if a
//! batch is delivered, retried or dead.

mod amount;
mod delivery;
mod emission;
mod sink;
mod verdict;

pub(crate) use amount::Amount;
pub(crate) use sink::HttpSink;
pub use sink::SinkError;
use std::sync::Arc;

use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_ledger::Ledger;

use crate::jobs::Roster;
use crate::metrics::UsageMetrics;
use crate::settings::UsageSettings;
use delivery::Delivery;
use emission::Emission;
use seatkeeper_engine::Backend;
use seatkeeper_engine::WorkerSet;
use sink::Sink;

/// The dependencies of the two jobs. Without a sink the jobs do not run. Usage follows from the history of
/// sessions, which retention keeps until a window covers the sessions, once the jobs are in the ledger.
pub(crate) struct Metering<S> {
    pub(crate) sink: S,
    pub(crate) settings: UsageSettings,
    /// The backend that serves capacities.
    pub(crate) backend: Backend,
    pub(crate) ledger: Ledger,
    pub(crate) metrics: UsageMetrics,
}

impl<S: Sink> Metering<S> {
    /// Starts the two jobs.
    pub(crate) async fn start(
        self,
        workers: &WorkerSet,
        jobs: &mut Roster,
        now: RegistryTime,
    ) -> Result<(), seatkeeper_ledger::Error> {
        let Self { sink, settings, backend, ledger, metrics } = self;
        let delivery = Delivery {
            registry: Arc::clone(&backend.registry),
            ledger: ledger.clone(),
            sink: Box::new(sink),
            duplicate_statuses: settings.duplicate_statuses,
            metrics: metrics.clone(),
        };
        // Delivery first, because an emission requests a run of the delivery job.
        jobs.start(delivery, workers, now).await?;
        let emission = Emission {
            clock: jobs.clock(),
            trusted: jobs.trusted_clock(),
            backend,
            ledger,
            interval: Span::from_secs(settings.emission_interval_seconds),
            batch_records: usize::try_from(settings.batch_records).unwrap_or(usize::MAX),
            metrics,
        };
        jobs.start(emission, workers, now).await
    }
}

#[cfg(test)]
mod tests;
