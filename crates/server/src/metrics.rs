//! Metrics for operators. `docs/metrics.md` describes each metric.
//!
//! Events are counted as they happen, in the struct of their subject, and every page shows the current
//! counts. Figures from the ledger, the registry or Redis are the `Source` of a [`CachedProbe`], a
//! cached probe: probes are throttled, and no scrape waits long for a probe.

mod access;
mod acquires;
mod gauges;
mod heartbeats;
mod http;
mod jobs;
mod ledger;
mod probe;
mod redis;
mod regions;
mod registry;
mod usage;

use std::sync::Arc;
use std::time::Duration;

use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use seatkeeper_engine::metrics::{LockMetrics, Metrics as EngineMetrics, OfKind, Timing};

use crate::error::Error;
pub(crate) use access::{MetricsAccess, Series};
pub(crate) use acquires::{AcquireFailure, AcquireMetrics};
use heartbeats::HeartbeatMetrics;
pub(crate) use http::{HttpMetrics, UNKNOWN_ROUTE};
pub(crate) use jobs::{JobMetrics, RunOutcome};
use ledger::LicenseSeries;
pub(crate) use ledger::{Books, LedgerPulse};
pub(crate) use probe::CachedProbe;
use probe::Source;
pub(crate) use redis::Redis;
pub(crate) use regions::{BatchOutcome, ForwardOutcome, RegionMetrics};
pub(crate) use registry::Node;
pub(crate) use usage::{Emitted, UsageMetrics};

/// The longest wait of a page for probes: half of the shortest scrape timeout in use.
const LOOK_PATIENCE: Duration = Duration::from_millis(500);

/// The age up to which a liveness probe is reused. `PULSE_PATIENCE` is the longest wait of a reader for
/// such a probe, longer than the probe may take.
const PULSE_AGE_MAX: Duration = Duration::from_millis(500);
const PULSE_PATIENCE: Duration = Duration::from_secs(2);

/// The counters of this node.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) acquires: AcquireMetrics,
    pub(crate) engine: EngineMetrics,
    pub(crate) heartbeats: HeartbeatMetrics,
    pub(crate) http: HttpMetrics,
    pub(crate) jobs: JobMetrics,
    pub(crate) regions: RegionMetrics,
    pub(crate) usage: UsageMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        let engine = EngineMetrics::default();
        Self {
            acquires: AcquireMetrics::default(),
            heartbeats: HeartbeatMetrics::default(),
            http: HttpMetrics::default(),
            jobs: JobMetrics::new(engine.locks.clone()),
            regions: RegionMetrics::default(),
            usage: UsageMetrics::default(),
            engine,
        }
    }
}

/// The cached probes.
pub(crate) struct Looks {
    pub(crate) node: CachedProbe<Node>,
    pub(crate) books: CachedProbe<Books>,
    pub(crate) ledger: CachedProbe<LedgerPulse>,
    /// `None` without a Redis.
    pub(crate) redis: Option<CachedProbe<Redis>>,
}

impl Looks {
    /// Creates the probes. The costly probes run once in `refresh` at most.
    pub(crate) fn new(node: Node, books: Books, redis: Option<Redis>, refresh: Duration) -> Self {
        let ledger = LedgerPulse(books.ledger.clone());
        Self {
            node: CachedProbe::new(node, refresh, LOOK_PATIENCE),
            books: CachedProbe::new(books, refresh, LOOK_PATIENCE),
            ledger: CachedProbe::new(ledger, PULSE_AGE_MAX, PULSE_PATIENCE),
            redis: redis.map(|redis| CachedProbe::new(redis, PULSE_AGE_MAX, PULSE_PATIENCE)),
        }
    }
}

/// The page that Prometheus scrapes.
pub(crate) struct MetricsPage {
    counted: Registry,
    of_licenses: Registry,
    looks: Arc<Looks>,
}

impl MetricsPage {
    /// Creates the page of `metrics` and `looks`.
    pub(crate) fn new(metrics: &Metrics, looks: Arc<Looks>) -> Self {
        let mut counted = Registry::default();
        metrics.acquires.register(&mut counted);
        metrics.engine.claims.register(&mut counted);
        metrics.heartbeats.register(&mut counted);
        metrics.engine.changes.register(&mut counted);
        metrics.jobs.register(&mut counted);
        metrics.engine.locks.register(&mut counted);
        metrics.usage.register(&mut counted);
        metrics.regions.register(&mut counted);
        metrics.http.register(&mut counted);
        counted.register_collector(Box::new(looks.node.clone()));
        counted.register_collector(Box::new(looks.books.clone()));
        counted.register_collector(Box::new(looks.ledger.clone()));
        if let Some(redis) = &looks.redis {
            counted.register_collector(Box::new(redis.clone()));
        }
        let mut of_licenses = Registry::default();
        of_licenses.register_collector(Box::new(LicenseSeries(looks.books.clone())));
        Self { counted, of_licenses, looks }
    }

    /// Writes the page in the OpenMetrics text format. Counters are never cached: a stalled counter would
    /// hide the very moments that an operator looks for.
    pub(crate) async fn text(&self, series: Series) -> Result<String, Error> {
        let Looks { node, books, ledger, redis } = &*self.looks;
        let redis = async { if let Some(redis) = redis { redis.latest().await.map(drop) } else { None } };
        let looks = async { tokio::join!(node.latest(), books.latest(), ledger.latest(), redis) };
        // A late probe continues in the background, and the next page shows the result.
        let _ = tokio::time::timeout(LOOK_PATIENCE, looks).await;
        self.written(series).map_err(|error| Error::Unwritable(Box::new(error)))
    }

    fn written(&self, series: Series) -> Result<String, std::fmt::Error> {
        let mut page = String::new();
        text::encode_registry(&mut page, &self.counted)?;
        match series {
            Series::All => text::encode_registry(&mut page, &self.of_licenses)?,
            Series::NoTenants => {}
        }
        text::encode_eof(&mut page)?;
        Ok(page)
    }
}
