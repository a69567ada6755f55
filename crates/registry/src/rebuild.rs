//! The contract of a registry that can lose its memory while nodes go on: the state of its buckets, and the
//! steps of a bucket's rebuild. `docs/failover.md` has the protocol.

use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::{Bucket, PoolId, RegistryTime, Session, Terms};

use crate::{Error, JournalEntry, Receipt, Registry};

/// The identity of a server's memory. Servers of different identity may hold different data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(pub Box<str>);

/// The condition of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The bucket.
    pub bucket: Bucket,
    /// The server that holds the bucket; `None` if the server never changes.
    pub server: Option<Identity>,
    /// The state of the bucket.
    pub state: State,
    /// The time that the bucket's server took to answer; zero if not measured.
    pub latency: Duration,
}

impl Condition {
    /// Returns the condition of a bucket whose server is unreachable.
    pub fn unreachable(bucket: Bucket) -> Self {
        Self { bucket, server: None, state: State::Unreachable, latency: Duration::ZERO }
    }
}

/// The state of a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The bucket's server is unreachable.
    Unreachable,
    /// The bucket has no data to serve: the memory is new, or was lost.
    Missing,
    /// The bucket is being rebuilt.
    Rebuilding {
        /// The epoch of the rebuild.
        epoch: u64,
    },
    /// The bucket may be served.
    Serving {
        /// The epoch of the bucket.
        epoch: u64,
        /// The server at the time of the rebuild; `None` if the server never changes.
        identity: Option<Identity>,
        /// Nodes have renewed the bucket's lease in time. If false, clients could not heartbeat for a while,
        /// or the clock jumped.
        is_leased: bool,
    },
}

/// A registry with a rebuild for each bucket.
///
/// Each call except [`conditions`](Rebuild::conditions) and [`renew_leases`](Rebuild::renew_leases) carries
/// the epoch to which the caller raised the bucket. The epoch is a fencing token, unique to the caller. From
/// [`rebuild_begin`](Rebuild::rebuild_begin) to [`rebuild_finish`](Rebuild::rebuild_finish), every call of
/// [`Registry`] on the bucket returns [`Error::NotServing`]. A step of a rebuild returns
/// [`Error::NotServing`] and changes nothing unless the bucket is under rebuild for exactly this epoch, so
/// that a loss of memory during a rebuild is detected. Every step is idempotent: a caller without an answer
/// repeats the step, and a late duplicate of a step changes nothing.
#[async_trait]
pub trait Rebuild: Registry {
    /// Returns the condition of every bucket, in order, with one round trip per server.
    async fn conditions(&self) -> Vec<Condition>;

    /// Renews the leases of the buckets served in this node's epochs. For nodes that serve clients.
    async fn renew_leases(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Stops serving a bucket. Accepts a bucket of any lower epoch, a missing bucket, and a bucket under
    /// rebuild for the same epoch; refuses a bucket of a higher epoch. Data and journal stay.
    async fn rebuild_begin(&self, bucket: Bucket, epoch: u64) -> Result<(), Error>;

    /// Reads the oldest events of the journal after `after`, of any epoch, or from the start for `None`.
    /// Returns at most `max` events, plus the rest of the last journal entry. `after` is the position of the
    /// last event read before.
    async fn rebuild_journal(
        &self,
        bucket: Bucket,
        epoch: u64,
        after: Option<Receipt>,
        max: usize,
    ) -> Result<Vec<JournalEntry>, Error>;

    /// Clears the bucket and its journal, in one or more steps, and raises the high-water mark of the bucket's
    /// clock to at least `not_before`: from here on the bucket has no earlier time.
    async fn rebuild_clear(&self, bucket: Bucket, epoch: u64, not_before: RegistryTime) -> Result<(), Error>;

    /// Opens a pool as [`Admission::open`](crate::Admission::open) does. A large pool may take several steps.
    async fn rebuild_fill(&self, epoch: u64, pool: Filling<'_>) -> Result<(), Error>;

    /// Serves the bucket, if the server's memory still has the `identity` on record in the ledger. `None`
    /// accepts any identity.
    async fn rebuild_finish(
        &self,
        bucket: Bucket,
        epoch: u64,
        identity: Option<&Identity>,
    ) -> Result<(), Error>;
}

/// A pool as known to the ledger.
#[derive(Clone, Copy, Debug)]
pub struct Filling<'a> {
    /// The pool.
    pub pool: &'a PoolId,
    /// Number of the pool's last event.
    pub seq: u64,
    /// The pool's terms, if known.
    pub terms: Option<Terms>,
    /// The pool's live sessions.
    pub live: &'a [Session],
}
