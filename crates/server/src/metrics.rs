//! What an operator watches: `docs/metrics.md` says what each metric means.
//!
//! What happens is counted where it happens, by the struct of its subject. What must be looked up is a [`Look`]: at a
//! scrape, at most so often, and no scrape waits long for it.

mod changes;
mod claims;
mod gauges;
mod http;
mod jobs;
mod ledger;
mod locks;
mod look;
mod redis;
mod registry;
mod timing;
mod usage;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::registry::Registry;
use seatkeeper_core::PoolKind;

use crate::error::Error;
pub(crate) use changes::ChangeMetrics;
pub(crate) use claims::{AcquireFailure, ClaimMetrics};
pub(crate) use http::HttpMetrics;
pub(crate) use jobs::{JobMetrics, RunOutcome};
pub(crate) use ledger::{Books, LedgerPulse};
pub(crate) use locks::LockMetrics;
pub(crate) use look::{Look, Source};
pub(crate) use redis::Redis;
pub(crate) use registry::Node;
use timing::Timing;
pub(crate) use usage::{Emitted, UsageMetrics};

const KINDS: [PoolKind; 3] = [PoolKind::License, PoolKind::Subscriber, PoolKind::Capacity];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfKind {
    pool_kind: &'static str,
}

impl From<PoolKind> for OfKind {
    fn from(kind: PoolKind) -> Self {
        Self { pool_kind: kind.as_str() }
    }
}

/// How often the page is made anew at most, and how long who asks for it waits: whoever asks meanwhile gets the one
/// that there is.
const PAGE_AGE_MAX: Duration = Duration::from_millis(250);
const PAGE_PATIENCE: Duration = Duration::from_secs(3);

/// How long the page waits for what is looked up.
const LOOK_PATIENCE: Duration = Duration::from_secs(1);

/// How often it is looked whether something answers, at most, and how long who wants to know waits: longer than that
/// may take.
const PULSE_AGE_MAX: Duration = Duration::from_millis(500);
const PULSE_PATIENCE: Duration = Duration::from_secs(2);

/// What is counted.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    pub(crate) changes: ChangeMetrics,
    pub(crate) claims: ClaimMetrics,
    pub(crate) http: HttpMetrics,
    pub(crate) jobs: JobMetrics,
    pub(crate) locks: LockMetrics,
    pub(crate) usage: UsageMetrics,
}

impl Default for Metrics {
    fn default() -> Self {
        let locks = LockMetrics::default();
        Self {
            changes: ChangeMetrics::default(),
            claims: ClaimMetrics::default(),
            http: HttpMetrics::default(),
            jobs: JobMetrics::new(locks.clone()),
            locks,
            usage: UsageMetrics::default(),
        }
    }
}

/// What is looked up.
pub(crate) struct Looks {
    pub(crate) node: Look<Node>,
    pub(crate) books: Look<Books>,
    pub(crate) ledger: Look<LedgerPulse>,
    /// None: there is no Redis.
    pub(crate) redis: Option<Look<Redis>>,
}

impl Looks {
    /// At these; what takes its time, once in `refresh` at most.
    pub(crate) fn new(node: Node, books: Books, redis: Option<Redis>, refresh: Duration) -> Self {
        let ledger = LedgerPulse(books.ledger.clone());
        Self {
            node: Look::new(node, refresh, LOOK_PATIENCE),
            books: Look::new(books, refresh, LOOK_PATIENCE),
            ledger: Look::new(ledger, PULSE_AGE_MAX, PULSE_PATIENCE),
            redis: redis.map(|redis| Look::new(redis, PULSE_AGE_MAX, PULSE_PATIENCE)),
        }
    }
}

/// The page that Prometheus reads.
pub(crate) struct MetricsPage {
    counted: Registry,
    looks: Arc<Looks>,
}

impl MetricsPage {
    /// The page of what is counted and of what is looked up.
    pub(crate) fn new(metrics: &Metrics, looks: Arc<Looks>) -> Look<Self> {
        let mut counted = Registry::default();
        metrics.claims.register(&mut counted);
        metrics.changes.register(&mut counted);
        metrics.jobs.register(&mut counted);
        metrics.locks.register(&mut counted);
        metrics.usage.register(&mut counted);
        metrics.http.register(&mut counted);
        counted.register_collector(Box::new(looks.node.clone()));
        counted.register_collector(Box::new(looks.books.clone()));
        counted.register_collector(Box::new(looks.ledger.clone()));
        if let Some(redis) = &looks.redis {
            counted.register_collector(Box::new(redis.clone()));
        }
        Look::new(Self { counted, looks }, PAGE_AGE_MAX, PAGE_PATIENCE)
    }
}

#[async_trait]
impl Source for MetricsPage {
    /// The text format of OpenMetrics.
    type Seen = String;

    async fn look(&self) -> Result<String, Error> {
        let Looks { node, books, ledger, redis } = &*self.looks;
        let redis = async { if let Some(redis) = redis { redis.latest().await.map(drop) } else { None } };
        tokio::join!(node.latest(), books.latest(), ledger.latest(), redis);
        let mut page = String::new();
        text::encode(&mut page, &self.counted).map_err(|error| Error::Unwritable(Box::new(error)))?;
        Ok(page)
    }
}
