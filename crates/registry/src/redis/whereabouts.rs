//! Where a session is: its id tells the bucket, and pool and holder never change.

use std::error::Error as StdError;

use async_trait::async_trait;
use quick_cache::sync::Cache;
use seatkeeper_core::{Authority, Holder, PoolId, SessionId};

use super::keys::{Key, holder_key};
use super::scripts::NO_KEY;

/// Who can tell the pool of a session that this node has not seen.
#[async_trait]
pub trait FindSession: Send + Sync + 'static {
    /// Looks the session up for a caller of this authority, which may tell the pool already.
    async fn find(&self, id: SessionId, who: &Authority) -> Found;
}

/// What is known of a session.
#[derive(Debug)]
pub enum Found {
    /// Its pool, and its holder if that is known as well.
    In(PoolId, Option<Holder>),
    /// It is not on record. It may be in the journal.
    NotOnRecord,
    /// There is no record. The registry searches for the session at each call.
    NoRecord,
    /// The record cannot be read now. The registry searches for the session, and has no answer if it does not find it.
    Unknown(Option<Box<dyn StdError + Send + Sync>>),
}

/// Nobody can tell: for tests.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoRecord;

#[async_trait]
impl FindSession for NoRecord {
    async fn find(&self, _id: SessionId, _who: &Authority) -> Found {
        Found::NoRecord
    }
}

/// A session's pool, and how it is found there.
#[derive(Clone, Debug)]
pub(super) struct Whereabouts {
    pub(super) pool: PoolId,
    pub(super) clue: Clue,
}

/// How a session is found in a large pool.
#[derive(Clone, Copy, Debug)]
pub(super) enum Clue {
    /// That is not known. A small pool needs none.
    Unknown,
    /// By what its holder goes by.
    Is(Key),
    /// It is not there, and never will be.
    NotThere,
}

impl Whereabouts {
    pub(super) fn of(pool: PoolId, holder: Option<&Holder>) -> Self {
        Self { pool, clue: holder.map_or(Clue::Unknown, |holder| Clue::Is(holder_key(holder))) }
    }
}

impl Clue {
    /// In the scripts' words.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Unknown => &[],
            Self::Is(key) => key,
            Self::NotThere => NO_KEY,
        }
    }
}

/// What this node remembers.
pub(super) struct Remembered(Cache<SessionId, Whereabouts>);

impl Remembered {
    pub(super) fn new(sessions_max: usize) -> Self {
        Self(Cache::new(sessions_max))
    }

    pub(super) fn get(&self, id: SessionId) -> Option<Whereabouts> {
        self.0.get(&id)
    }

    pub(super) fn note(&self, id: SessionId, whereabouts: Whereabouts) {
        self.0.insert(id, whereabouts);
    }
}

impl std::fmt::Debug for Remembered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Remembered({} sessions)", self.0.len())
    }
}
