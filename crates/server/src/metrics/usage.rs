//! How usage got on record and to its receiver.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use seatkeeper_ledger::usage::Settlement;

/// Windows and batches of usage that this node had to do with.
#[derive(Clone, Debug)]
pub(crate) struct UsageMetrics(Family<Came, Counter>);

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Came {
    outcome: &'static str,
}

/// What came of an emission: of its window first, then of each try to deliver one of its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emitted {
    /// A window is on record.
    Recorded,
    /// It could not be put there.
    Failed,
    /// The receiver has a batch.
    Delivered,
    /// It does not; it will be tried again.
    Retried,
    /// It will never take it as it is.
    Dead,
}

impl Emitted {
    const ALL: [Self; 5] = [Self::Recorded, Self::Failed, Self::Delivered, Self::Retried, Self::Dead];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Recorded => "recorded",
            Self::Failed => "failed",
            Self::Delivered => "delivered",
            Self::Retried => "retried",
            Self::Dead => "dead",
        }
    }
}

impl From<&Settlement> for Emitted {
    fn from(settlement: &Settlement) -> Self {
        match settlement {
            Settlement::Delivered { .. } => Self::Delivered,
            Settlement::Retry { .. } => Self::Retried,
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

    /// This came of an emission.
    pub(crate) fn came(&self, outcome: Emitted) {
        self.0.get_or_create(&Came { outcome: outcome.as_str() }).inc();
    }
}
