//! Session locations: the session id carries the bucket, and a session's pool and holder never change, so a
//! cached location stays valid.

use std::error::Error as StdError;

use async_trait::async_trait;
use quick_cache::sync::Cache;
use seatkeeper_core::{Authority, Holder, PoolId, SessionId};

use super::keys::{Key, holder_key};
use super::scripts::NO_KEY;

/// A source of the pools of sessions that this node has not seen.
#[async_trait]
pub trait SessionLocator: Send + Sync + 'static {
    /// Looks up the session for a caller. The caller's authority may imply the pool.
    async fn find(&self, id: SessionId, who: &Authority) -> SearchResult;
}

/// The result of a lookup.
#[derive(Debug)]
pub enum SearchResult {
    /// The pool, and the holder if known. Without a holder, the caller reaches no other pool, and the pool need not have
    /// the session.
    In(PoolId, Option<Holder>),
    /// The ledger does not have the session. The session may be in the journal.
    NotOnRecord,
    /// No ledger is attached. The registry searches its buckets at each call.
    NoRecord,
    /// The ledger is unreachable. The registry searches the bucket, and returns an error if the search fails.
    Unknown(Option<Box<dyn StdError + Send + Sync>>),
}

/// A source without a ledger, for tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRecord;

#[async_trait]
impl SessionLocator for NoRecord {
    async fn find(&self, _id: SessionId, _who: &Authority) -> SearchResult {
        SearchResult::NoRecord
    }
}

/// A session's pool, and a location hint for large pools.
#[derive(Clone, Debug)]
pub(super) struct SessionLocation {
    pub(super) pool: PoolId,
    pub(super) hint: LocationHint,
}

/// A location hint: the way to a session in a large pool.
#[derive(Clone, Copy, Debug)]
pub(super) enum LocationHint {
    /// Unknown. A small pool needs no hint.
    Unknown,
    /// The key of the session's holder.
    Is(Key),
    /// The session is not in the pool at present.
    NotThere,
}

impl SessionLocation {
    pub(super) fn new(pool: PoolId, holder: Option<&Holder>) -> Self {
        Self {
            pool,
            hint: holder.map_or(LocationHint::Unknown, |holder| LocationHint::Is(holder_key(holder))),
        }
    }

    /// Returns whether nobody has seen the session in the pool.
    pub(super) fn is_guess(&self) -> bool {
        match self.hint {
            LocationHint::Unknown => true,
            LocationHint::Is(_) | LocationHint::NotThere => false,
        }
    }
}

impl LocationHint {
    /// Encodes the hint for the scripts.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Unknown => &[],
            Self::Is(key) => key,
            Self::NotThere => NO_KEY,
        }
    }
}

/// A cache of session locations.
pub(super) struct Remembered(Cache<SessionId, SessionLocation>);

impl Remembered {
    pub(super) fn new(sessions_max: usize) -> Self {
        Self(Cache::new(sessions_max))
    }

    pub(super) fn get(&self, id: SessionId) -> Option<SessionLocation> {
        self.0.get(&id)
    }

    pub(super) fn note(&self, id: SessionId, location: SessionLocation) {
        self.0.insert(id, location);
    }
}

impl std::fmt::Debug for Remembered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Remembered({} sessions)", self.0.len())
    }
}
