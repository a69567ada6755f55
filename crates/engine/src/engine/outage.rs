//! Detects an outage of the ledger, from this node's point of view.

use super::Engine;

impl Engine {
    /// Returns whether the ledger failed to answer lately: the last commit or the last reading of the
    /// buckets' rows failed.
    pub fn is_ledger_away(&self) -> bool {
        self.are_records_failing() || !self.lease.reaches_ledger()
    }
}
