//! Counters and latencies filled by the engine and shown on the program's metrics page. A new metric belongs
//! in the struct of its subject.

mod changes;
mod claims;
mod locks;
mod timing;

use prometheus_client::encoding::EncodeLabelSet;
use seatkeeper_core::PoolKind;

pub use changes::ChangeMetrics;
pub use claims::ClaimMetrics;
pub use locks::LockMetrics;
pub use timing::Timing;

/// The label of a kind of pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct OfKind {
    pool_kind: &'static str,
}

impl From<PoolKind> for OfKind {
    fn from(kind: PoolKind) -> Self {
        Self { pool_kind: kind.as_str() }
    }
}

/// All metrics filled by the engine. A clone counts into the same metrics.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Changes recorded by this node.
    pub changes: ChangeMetrics,
    /// Claims and heartbeats answered by this node.
    pub claims: ClaimMetrics,
    /// Locks held by another node.
    pub locks: LockMetrics,
}
