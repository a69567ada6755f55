//! What the ledger knows of what is in use, and whether it answers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
use seatkeeper_core::PoolKind;
use seatkeeper_ledger::{Ledger, LicenseSeats};

use super::gauges::{gauge, gauges};
use super::{KINDS, Look, OfKind, Source};
use crate::error::Error;

/// The ledger, for what it has counted.
pub(crate) struct Books {
    pub(crate) ledger: Ledger,
    /// Licenses that have series of their own, at most.
    pub(crate) license_series_max: u32,
}

/// What it has counted.
pub(crate) struct Counted {
    live: BTreeMap<PoolKind, u64>,
    seats: Vec<LicenseSeats>,
    outbox_depth: u64,
}

#[async_trait]
impl Source for Books {
    type Seen = Counted;

    async fn look(&self) -> Result<Counted, Error> {
        let live = self.ledger.live_by_kind().await.map_err(Error::Ledger)?;
        let seats = match self.license_series_max {
            0 => Vec::new(),
            max => self.ledger.license_seats(max).await.map_err(Error::Ledger)?,
        };
        let outbox_depth = self.ledger.usage_outbox_depth().await.map_err(Error::Ledger)?;
        Ok(Counted { live, seats, outbox_depth })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfLicense {
    license_id: String,
}

impl Collector for Look<Books> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let Some(counted) = self.known() else { return Ok(()) };
        let Counted { live, seats: _, outbox_depth } = &*counted;
        let encoder = &mut encoder;
        gauges(
            encoder,
            "sessions_active",
            "Sessions that are live on record.",
            KINDS.map(|kind| (OfKind::from(kind), live.get(&kind).copied().unwrap_or_default())),
        )?;
        gauge(
            encoder,
            "usage_outbox_depth",
            "Batches of usage that wait for their receiver.",
            Some(*outbox_depth),
        )
    }
}

/// The series of single licenses, which only a protected scrape shows.
#[derive(Debug)]
pub(super) struct LicenseSeries(pub(super) Look<Books>);

impl Collector for LicenseSeries {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let Some(counted) = self.0.known() else { return Ok(()) };
        let encoder = &mut encoder;
        let of = |seats: &LicenseSeats| OfLicense { license_id: seats.license.to_string() };
        gauges(
            encoder,
            "license_seats_used",
            "Seats of a license that are in use, on record.",
            counted.seats.iter().map(|seats| (of(seats), seats.used)),
        )?;
        gauges(
            encoder,
            "license_seats_total",
            "Seats of a license.",
            counted.seats.iter().map(|seats| (of(seats), seats.total)),
        )
    }
}

/// The ledger, for whether it answers.
pub(crate) struct LedgerPulse(pub(crate) Ledger);

/// How it answered.
pub(crate) struct Pulse {
    /// Whether it did.
    pub(crate) is_up: bool,
    /// How long that took.
    pub(crate) latency: Duration,
}

/// How long it may take.
const PULSE_MAX: Duration = Duration::from_secs(1);

#[async_trait]
impl Source for LedgerPulse {
    type Seen = Pulse;

    async fn look(&self) -> Result<Pulse, Error> {
        let began = Instant::now();
        let answered = tokio::time::timeout(PULSE_MAX, self.0.ping()).await;
        Ok(Pulse { is_up: matches!(answered, Ok(Ok(()))), latency: began.elapsed() })
    }
}

impl Collector for Look<LedgerPulse> {
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
