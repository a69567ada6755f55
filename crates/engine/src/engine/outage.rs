//! An outage of the ledger, as this node sees it.

use super::Engine;

impl Engine {
    /// Returns whether the ledger did not answer lately: the last commit failed, or the last reading of the buckets' rows.
    pub fn is_ledger_away(&self) -> bool {
        self.are_records_failing() || !self.lease.reaches_ledger()
    }
}
