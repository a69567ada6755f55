//! Counters of usage windows and of deliveries to the sink.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use seatkeeper_core::named_enum;
use seatkeeper_ledger::usage::Settlement;

/// Counters of usage windows and batches handled by this node.
#[derive(Clone, Debug)]
pub(crate) struct UsageMetrics(Family<Came, Counter>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Came {
    outcome: &'static str,
}

named_enum! {
    /// An outcome of an emission: first of the window, then of each attempt to deliver a batch.
    pub(crate) enum Emitted {
        /// A window is on record.
        Recorded = "recorded",
        /// A window could not be recorded.
        Failed = "failed",
        /// The sink accepted a batch.
        Delivered = "delivered",
        /// The sink did not accept a batch. The delivery is retried.
        Retried = "retried",
        /// The sink rejected a batch of several records. Two smaller batches take its place.
        Split = "split",
        /// The sink rejected a batch for good.
        Dead = "dead",
    }
}

impl From<&Settlement> for Emitted {
    fn from(settlement: &Settlement) -> Self {
        match settlement {
            Settlement::Delivered { .. } => Self::Delivered,
            Settlement::Retry { .. } => Self::Retried,
            Settlement::Split { .. } | Settlement::Refused { .. } => Self::Split,
            Settlement::Dead { .. } => Self::Dead,
        }
    }
}

impl Default for UsageMetrics {
    fn default() -> Self {
        let family = Family::<Came, Counter>::default();
        for outcome in Emitted::ALL.map(Emitted::as_str) {
            drop(family.get_or_create(&Came { outcome }));
        }
        Self(family)
    }
}

impl UsageMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "usage_emissions",
            "Windows of usage that were put on record or not, and tries to deliver their batches, by the outcome",
            self.0.clone(),
        );
    }

    /// Counts an outcome.
    pub(crate) fn came(&self, outcome: Emitted) {
        self.0.get_or_create(&Came { outcome: outcome.as_str() }).inc();
    }
}
