//! What a registry offers whose memory can be lost while others go on: how its buckets are, and the steps by
//! which a bucket is filled anew. `docs/failover.md` has the protocol that takes them.

use async_trait::async_trait;
use seatkeeper_core::{Bucket, PoolId, RegistryTime, Session, Terms};

use crate::{Error, JournalEntry, Receipt, Registry};

/// Which server holds a bucket: two that differ may differ in what they know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity(pub Box<str>);

/// How a bucket is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The bucket.
    pub bucket: Bucket,
    /// The server that holds it now; none if it is always the same one.
    pub server: Option<Identity>,
    /// What is in it.
    pub state: State,
}

/// What is in a bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Its server cannot be reached.
    Unreachable,
    /// Nothing that could be served: its memory is new, or was lost.
    Missing,
    /// It is being filled.
    Rebuilding {
        /// For this epoch.
        epoch: u64,
    },
    /// It may be served.
    Serving {
        /// In this epoch.
        epoch: u64,
        /// By the server that it was filled on; none if it is always the same one.
        identity: Option<Identity>,
        /// Nodes have renewed its lease in time. If not, clients could not heartbeat for a while, or the clock jumped.
        is_leased: bool,
    },
}

/// A registry whose buckets can be filled anew, one by one.
///
/// Each call but [`conditions`](Rebuild::conditions) names the epoch that the caller raised the bucket to, which nobody
/// else has. From [`rebuild_begin`](Rebuild::rebuild_begin) to [`rebuild_finish`](Rebuild::rebuild_finish) every call of
/// [`Registry`] on the bucket is refused with [`Error::NotServing`]; so is each of the others here unless the
/// bucket is being rebuilt for exactly this epoch, and then nothing changes. What was lost in between is
/// noticed by that.
#[async_trait]
pub trait Rebuild: Registry {
    /// How every bucket is, in their order. One round trip for each server.
    async fn conditions(&self) -> Vec<Condition>;

    /// Renews the leases of the buckets that are served in the epochs known to this node. For nodes that serve clients.
    async fn renew_leases(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Stops serving a bucket. Done from any lower epoch, from nothing, and again while it is being rebuilt for
    /// the same; refused from a higher one. What is in it stays, its journal as well.
    async fn rebuild_begin(&self, bucket: Bucket, epoch: u64) -> Result<(), Error>;

    /// The oldest events of the journal behind `after`, of whatever epoch; none: from its start. At most `max`, and those
    /// that were written in one entry with the last of them: `after` is the place of the last that was read before.
    async fn rebuild_journal(
        &self,
        bucket: Bucket,
        epoch: u64,
        after: Option<Receipt>,
        max: usize,
    ) -> Result<Vec<JournalEntry>, Error>;

    /// Empties the bucket, its journal as well. The high-water mark of its clock stays. May take several steps.
    async fn rebuild_clear(&self, bucket: Bucket, epoch: u64) -> Result<(), Error>;

    /// Opens a pool as [`Admission::open`](crate::Admission::open) does, at a time not before `not_before`. A large pool may take several steps.
    async fn rebuild_fill(
        &self,
        epoch: u64,
        not_before: RegistryTime,
        pool: Filling<'_>,
    ) -> Result<(), Error>;

    /// Serves the bucket from now on, if the server's memory still is the one of `identity`, which the ledger names; none:
    /// whichever it is.
    async fn rebuild_finish(
        &self,
        bucket: Bucket,
        epoch: u64,
        identity: Option<&Identity>,
    ) -> Result<(), Error>;
}

/// A pool as the ledger knows it.
#[derive(Clone, Copy, Debug)]
pub struct Filling<'a> {
    /// The pool.
    pub pool: &'a PoolId,
    /// The number of its last event.
    pub seq: u64,
    /// Its terms, if they are known.
    pub terms: Option<Terms>,
    /// Its live sessions.
    pub live: &'a [Session],
}
