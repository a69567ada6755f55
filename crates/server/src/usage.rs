//! Usage of capacities: metered window by window, and brought to the operator's sink.
//!
//! Two jobs: `Emission` puts windows on record, `Delivery` sends their batches until the sink has them. What
//! a sink is told and how it answers is `sink`; what an answer means, `verdict`.

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

/// What the two jobs work with. Without a sink there is no need of them, and nothing is lost: what was used
/// follows from the sessions' history.
pub(crate) struct Metering<S> {
    pub(crate) sink: S,
    pub(crate) settings: UsageSettings,
    /// What serves capacities.
    pub(crate) backend: Backend,
    pub(crate) ledger: Ledger,
    pub(crate) metrics: UsageMetrics,
}

impl<S: Sink> Metering<S> {
    /// Starts both jobs.
    pub(crate) async fn start(
        self,
        crew: &WorkerSet,
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
        // First, for an emission asks for a run of it.
        jobs.start(delivery, crew, now).await?;
        let emission = Emission {
            clock: jobs.clock(),
            backend,
            ledger,
            interval: Span::from_secs(settings.emission_interval_seconds),
            batch_records: usize::try_from(settings.batch_records).unwrap_or(usize::MAX),
            metrics,
        };
        jobs.start(emission, crew, now).await
    }
}

#[cfg(test)]
mod tests;
