//! Gauges of this node: readiness, the mode of the registry, the backlog of the journal, and
//! expired sessions to reclaim.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use seatkeeper_core::{Bucket, PoolKind, Span};
use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_registry::{ClockSteps, Store};
use tokio::time::timeout;

use super::gauges::{gauge, gauges};
use super::{CachedProbe, OfKind, Source};
use crate::error::Error;
use seatkeeper_engine::{Backend, Engine};

/// Time limit of a registry's answer, so that a hanging registry does not delay the figures of the other
/// registry.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// This node as the source of figures.
pub(crate) struct Node {
    pub(crate) engine: Arc<Engine>,
    pub(crate) clocks: Vec<(Store, Arc<ClockSteps>)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfStore {
    store: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StepLabels {
    store: &'static str,
    direction: &'static str,
}

impl From<Store> for OfStore {
    fn from(store: Store) -> Self {
        Self { store: store.as_str() }
    }
}

/// The probed state of the node.
pub(crate) struct Standing {
    is_ready: bool,
    /// The wait of the oldest event that this node must commit; `None` if no registry answers.
    journal_lag: Option<Span>,
    /// Buckets with a session to reclaim; `None` if no registry answers.
    due: Option<usize>,
}

#[async_trait]
impl Source for Node {
    type Snapshot = Standing;

    /// A probe takes long only while a registry does not answer. In an outage operators want fresh figures,
    /// so the rest is short.
    const RESTS: u32 = 1;

    /// Probes all registries in service. A silent registry is left out, for other metrics show the outage,
    /// and the figures of the remaining registry still count.
    async fn probe(&self) -> Result<Standing, Error> {
        let is_ready = self.engine.is_ready().is_ok();
        let (mut journal_lag, mut due) = (None, None);
        for backend in self.engine.registries().all().filter(|backend| backend.serves_any()) {
            let Ok(Ok(lag)) = timeout(ANSWER_MAX, lag(backend)).await else { continue };
            journal_lag = journal_lag.max(Some(lag));
            if let Ok(Ok(buckets)) = timeout(ANSWER_MAX, backend.registry.due_buckets()).await {
                due = Some(due.unwrap_or_default() + buckets.len());
            }
        }
        Ok(Standing { is_ready, journal_lag, due })
    }
}

/// Returns the wait of the oldest event. An event in an unreadable entry has waited at least since this node met the
/// entry.
async fn lag(backend: &Backend) -> Result<Span, seatkeeper_registry::Error> {
    let now = backend.registry.now().await?;
    let oldest = backend.commits.waiting_since().map_or(Span::default(), |since| now.since(since));
    let unreadable = backend.registry.unreadable_entries().into_iter();
    let held_up = unreadable.map(|entry| Span::from_millis(entry.since.elapsed().as_millis() as u64)).max();
    Ok(oldest.max(held_up.unwrap_or_default()))
}

impl Node {
    /// Returns the events that wait for the ledger, as far as this node knows.
    fn journal_depth(&self) -> u64 {
        self.engine.registries().all().map(|backend| backend.registry.journal_depth() as u64).sum()
    }

    /// Returns the seconds since a sweeper last had no work left, the maximum over all registries; `None` if
    /// the sweeper is off.
    fn sweeper_idle(&self) -> Option<f64> {
        let swept = self.engine.registries().all().filter_map(|backend| *backend.swept.lock());
        swept.map(|swept| swept.elapsed().as_secs_f64()).reduce(f64::max)
    }

    /// Writes the counters of steps of the clocks.
    fn clock_steps(&self, encoder: &mut DescriptorEncoder<'_>) -> std::fmt::Result {
        let help = "Steps of a clock by more than a second, as this node has seen them.";
        let mut metric = encoder.encode_descriptor("clock_steps", help, None, MetricType::Counter)?;
        for (store, steps) in &self.clocks {
            for (direction, count) in [("ahead", steps.ahead()), ("behind", steps.behind())] {
                let labels = StepLabels { store: store.as_str(), direction };
                metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
            }
        }
        Ok(())
    }

    /// Returns the number of the mode that serves pools of `kind`: the worst mode over all buckets.
    fn mode(&self, kind: PoolKind) -> u64 {
        let registries = self.engine.registries();
        let modes = Bucket::all().map(|bucket| registries.mode_for(kind, self.engine.mode(bucket)));
        modes.map(number_of).max().unwrap_or_default()
    }
}

fn number_of(mode: BucketMode) -> u64 {
    match mode {
        BucketMode::Registry => 0,
        BucketMode::Ledger => 1,
        BucketMode::Allow => 2,
        BucketMode::Deny => 3,
    }
}

impl Collector for CachedProbe<Node> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let (node, standing, encoder) = (self.source(), self.known(), &mut encoder);
        let standing = standing.as_deref();
        gauge(
            encoder,
            "node_ready",
            "Whether this node should be asked: 1 or 0, as /readyz says.",
            standing.map(|standing| u64::from(standing.is_ready)),
        )?;
        gauges(
            encoder,
            "registry_mode",
            "What serves pools of this kind, the worst over all buckets: 0 the registry, 1 the ledger, 2 each node alone, 3 nothing.",
            PoolKind::ALL.map(|kind| (OfKind::from(kind), node.mode(kind))),
        )?;
        gauge(
            encoder,
            "journal_depth",
            "Events that wait to be put on record, as far as this node knows.",
            Some(node.journal_depth()),
        )?;
        gauge(
            encoder,
            "journal_lag_seconds",
            "How long the oldest event waits that this node is to put on record.",
            standing.and_then(|standing| standing.journal_lag).map(seconds),
        )?;
        gauge(
            encoder,
            "cleanup_queue_size",
            "Buckets, of 256, in which a session is over and not yet on record as expired.",
            standing.and_then(|standing| standing.due).map(|due| due as u64),
        )?;
        gauge(
            encoder,
            "sweeper_idle_seconds",
            "How long ago the sweeper last had reclaimed all there was.",
            node.sweeper_idle(),
        )?;
        gauges(
            encoder,
            "clock_trusted",
            "Whether this node believes the clocks of the store: 1, or 0 while sessions do not expire by them.",
            node.clocks.iter().map(|(store, steps)| (OfStore::from(*store), u64::from(steps.is_trusted()))),
        )?;
        node.clock_steps(encoder)
    }
}

fn seconds(span: Span) -> f64 {
    const MILLIS: f64 = 1e3;
    span.as_millis() as f64 / MILLIS
}
