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
use std::sync::Arc;

use seatkeeper_core::Span;
use seatkeeper_ledger::Ledger;
use seatkeeper_registry::Registry;

use crate::engine::Commits;
use crate::jobs::Roster;
use crate::settings::Settings;
use crate::start::StartError;
use crate::workers::Crew;
use delivery::Delivery;
use emission::Emission;
use sink::HttpSink;

/// Starts both jobs, if there is a sink. Without one nothing is lost: what was used follows from the
/// sessions' history.
pub(crate) async fn start(
    settings: &Settings,
    registry: &Arc<dyn Registry>,
    ledger: &Ledger,
    commits: &Arc<Commits>,
    crew: &Crew,
    jobs: &mut Roster,
) -> Result<(), StartError> {
    let Some(sink) = HttpSink::of(&settings.usage)? else { return Ok(()) };
    let now = registry.now().await?;
    let emission = Emission {
        registry: Arc::clone(registry),
        ledger: ledger.clone(),
        commits: Arc::clone(commits),
        interval: Span::from_secs(settings.usage.emission_interval_seconds),
        batch_records: usize::try_from(settings.usage.batch_records).unwrap_or(usize::MAX),
    };
    jobs.start(emission, crew, now).await?;
    let delivery = Delivery {
        registry: Arc::clone(registry),
        ledger: ledger.clone(),
        sink: Box::new(sink),
        duplicate_statuses: settings.usage.duplicate_statuses.clone(),
    };
    Ok(jobs.start(delivery, crew, now).await?)
}
