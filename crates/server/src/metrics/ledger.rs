//! Figures from the ledger: live sessions, seats of licenses, undelivered usage, moving homes, and the ledger's liveness.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use seatkeeper_core::{PoolKind, Span};
use seatkeeper_engine::Engine;
use seatkeeper_ledger::jobs::JobName;
use seatkeeper_ledger::{Ledger, LicenseSeats};

use super::gauges::{gauge, gauges};
use super::{CachedProbe, OfKind, Source};
use crate::error::Error;

/// The ledger as the source of figures.
pub(crate) struct Books {
    pub(crate) ledger: Ledger,
    /// Maximum of licenses with a series.
    pub(crate) license_series_max: u32,
    /// The clock of emissions of usage; `None` on a node without a sink.
    pub(crate) emission_clock: Option<Arc<Engine>>,
}

/// The figures from the ledger.
pub(crate) struct Counted {
    live: BTreeMap<PoolKind, u64>,
    seats: Vec<LicenseSeats>,
    outbox_depth: u64,
    dead_batches: u64,
    /// `None` without a sink, or if the registry does not tell the time.
    emission_overdue: Option<Span>,
    homes_moving: u64,
}

#[async_trait]
impl Source for Books {
    type Snapshot = Counted;

    async fn probe(&self) -> Result<Counted, Error> {
        let live = self.ledger.live_by_kind().await.map_err(Error::Ledger)?;
        let seats = match self.license_series_max {
            0 => Vec::new(),
            max => self.ledger.license_seats(max).await.map_err(Error::Ledger)?,
        };
        let outbox_depth = self.ledger.usage_outbox_depth().await.map_err(Error::Ledger)?;
        let dead_batches = self.ledger.dead_usage_batches().await.map_err(Error::Ledger)?;
        let homes_moving = self.ledger.count_homes_moving().await.map_err(Error::Ledger)?;
        let emission_overdue = self.emission_overdue().await?;
        Ok(Counted { live, seats, outbox_depth, dead_batches, emission_overdue, homes_moving })
    }
}

impl Books {
    /// Returns the time since an emission of usage was due that has not succeeded yet. Only a run that succeeds moves
    /// the due time, so the emission of any node counts, and a run that hangs is seen.
    async fn emission_overdue(&self) -> Result<Option<Span>, Error> {
        let Some(clock) = &self.emission_clock else { return Ok(None) };
        let due = self.ledger.next_run(JobName::UsageEmission).await.map_err(Error::Ledger)?;
        let now = tokio::time::timeout(CLOCK_MAX, clock.now()).await;
        let now = now.ok().and_then(Result::ok);
        Ok(due.zip(now).map(|(due, now)| now.since(due)))
    }
}

/// Time limit of the registry's clock, so that a hanging registry does not cost the figures of the ledger.
const CLOCK_MAX: Duration = Duration::from_secs(1);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLicense {
    license_id: String,
}

impl Collector for CachedProbe<Books> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let Some(counted) = self.known() else { return Ok(()) };
        let Counted { live, seats: _, outbox_depth, dead_batches, emission_overdue, homes_moving } =
            &*counted;
        let encoder = &mut encoder;
        gauges(
            encoder,
            "sessions_active",
            "Sessions that are live on record.",
            PoolKind::ALL.map(|kind| (OfKind::from(kind), live.get(&kind).copied().unwrap_or_default())),
        )?;
        gauge(
            encoder,
            "usage_outbox_depth",
            "Batches of usage that wait for their receiver.",
            Some(*outbox_depth),
        )?;
        gauge(
            encoder,
            "usage_batches_dead",
            "Batches of usage that their receiver has refused for good.",
            Some(*dead_batches),
        )?;
        gauge(
            encoder,
            "usage_emission_overdue_seconds",
            "Time since an emission of usage was due that has not succeeded yet.",
            emission_overdue.map(|overdue| overdue.as_millis() as f64 / 1_000.0),
        )?;
        gauge(
            encoder,
            "homes_moving",
            "Homes of subscribers on their way out of this region.",
            Some(*homes_moving),
        )
    }
}

/// The series of single licenses, shown only to a protected scrape.
#[derive(Debug)]
pub(super) struct LicenseSeries(pub(super) CachedProbe<Books>);

impl Collector for LicenseSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let Some(counted) = self.0.known() else { return Ok(()) };
        let encoder = &mut encoder;
        let labels = |seats: &LicenseSeats| OfLicense { license_id: seats.license.to_string() };
        gauges(
            encoder,
            "license_seats_used",
            "Seats of a license that are in use, on record.",
            counted.seats.iter().map(|seats| (labels(seats), seats.used)),
        )?;
        gauges(
            encoder,
            "license_seats_total",
            "Seats of a license.",
            counted.seats.iter().map(|seats| (labels(seats), seats.total)),
        )
    }
}

/// The ledger as the source of a liveness probe.
pub(crate) struct LedgerPulse(pub(crate) Ledger);

/// The result of a liveness probe.
pub(crate) struct Pulse {
    /// Says that the ledger answered in time.
    pub(crate) is_up: bool,
    /// The duration of the probe.
    pub(crate) latency: Duration,
}

/// Time limit of the ledger's answer.
const PULSE_MAX: Duration = Duration::from_secs(1);

#[async_trait]
impl Source for LedgerPulse {
    type Snapshot = Pulse;

    /// A probe takes long only while the ledger does not answer. In an outage operators want fresh news, so the
    /// rest is short.
    const RESTS: u32 = 1;

    async fn probe(&self) -> Result<Pulse, Error> {
        let began = Instant::now();
        let answered = tokio::time::timeout(PULSE_MAX, self.0.ping()).await;
        Ok(Pulse { is_up: matches!(answered, Ok(Ok(()))), latency: began.elapsed() })
    }
}

impl Collector for CachedProbe<LedgerPulse> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let pulse = self.known();
        gauge(
            &mut encoder,
            "ledger_up",
            "Whether the ledger answers this node: 1 or 0.",
            Some(u64::from(pulse.is_some_and(|pulse| pulse.is_up))),
        )
    }
}
