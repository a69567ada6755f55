//! Counts contended locks.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

/// Failed attempts of this node to take a lock held by another node.
#[derive(Clone, Debug, Default)]
pub struct LockMetrics(Counter);

impl LockMetrics {
    /// Registers these metrics with a metrics page.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "lock_contention",
            "Locks that another node had when this one wanted them: of jobs, and of buckets that are to be rebuilt",
            self.0.clone(),
        );
    }

    /// Counts `locks` held by another node.
    pub fn contended(&self, locks: usize) {
        self.0.inc_by(locks as u64);
    }
}
