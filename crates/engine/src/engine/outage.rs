//! Detects outages of the ledger and of the registry, from this node's point of view.

use super::Engine;

impl Engine {
    /// Returns whether the ledger failed to answer lately: the last commit or the last reading of the
    /// buckets' rows failed.
    pub fn is_ledger_away(&self) -> bool {
        self.are_records_failing() || !self.lease.reaches_ledger()
    }

    /// Returns whether every live node reaches the registry of every bucket, by the latest reading of the ledger. `true`
    /// on a single server.
    pub fn is_registry_reached_by_all(&self) -> bool {
        self.lease.is_registry_reached_by_all()
    }
}
