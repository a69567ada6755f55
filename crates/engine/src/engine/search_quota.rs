//! The bound on look-ups of sessions that a caller invents.

use crate::error::Error;

/// A caller's quota of searches in the ledger that find no session.
///
/// [`Engine::heartbeat`](super::Engine::heartbeat) checks the quota before each query of the ledger, and charges the
/// quota for a query without a result. The heartbeat of a session on record is never charged. Searches that run at the same
/// time may exceed the quota by their number, because a charge follows the query.
pub trait SearchQuota: Send + Sync {
    /// The error of a heartbeat, with a case for a used-up quota.
    type Error: From<Error> + Send;

    /// Returns an error if the quota is used up.
    fn check(&self) -> Result<(), Self::Error>;

    /// Charges the quota for one search that found no session.
    fn charge(&self);
}
