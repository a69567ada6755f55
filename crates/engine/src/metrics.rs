//! Counters and latencies that the engine fills. The program registers them with its page of metrics.

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

/// Every kind of pool, for metrics with a series for each.
pub const KINDS: [PoolKind; 3] = [PoolKind::License, PoolKind::Subscriber, PoolKind::Capacity];

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

/// All metrics that the engine fills. A clone counts into the same metrics.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Changes that this node put on record.
    pub changes: ChangeMetrics,
    /// Claims and heartbeats, as this node answered them.
    pub claims: ClaimMetrics,
    /// Locks that another node had.
    pub locks: LockMetrics,
}
