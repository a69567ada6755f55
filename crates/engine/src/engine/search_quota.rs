//! The bound on look-ups of sessions that a caller invents.

use crate::error::Error;

/// A caller's quota of searches that find no session.
///
/// [`Engine::heartbeat`](super::Engine::heartbeat) charges the quota before each search, so that concurrent searches
/// cannot exceed the quota. A search that finds a session, or fails, gives the charge back: the heartbeat of a session on
/// record costs nothing.
pub trait SearchQuota: Send + Sync {
    /// The error of a heartbeat, with a case for a used-up quota.
    type Error: From<Error> + Send;
    /// A search under way.
    type Search: ChargedSearch;

    /// Charges the quota for one search. Waits while searches under way have the rest of the quota, because they may give
    /// the charge back. Returns an error if searches without a result have used up the quota.
    fn charge(&self) -> impl Future<Output = Result<Self::Search, Self::Error>> + Send;
}

/// A search under way, charged to a [`SearchQuota`]. The charge of a dropped search stays, so a caller gains nothing by
/// hanging up.
pub trait ChargedSearch: Send {
    /// Gives the charge back.
    fn give_back(self);
}

/// Gives the charge of `search` back, unless `found` says that no session was found.
pub(super) fn settle<T, E>(search: impl ChargedSearch, found: &Result<Option<T>, E>) {
    if !matches!(found, Ok(None)) {
        search.give_back();
    }
}
