//! The use of a ledger by one process alone, with the live sessions in the memory of the process.
//!
//! Over SQLite the process locks the data directory. Over PostgreSQL the process holds an advisory lock, and nodes that
//! share a registry refuse to serve beside it. The lock may be lost with its connection. The buckets are the fence: a
//! process that takes the ledger gives every bucket a new epoch and its own registry identity, and the previous process
//! finds them. A promoted standby or a restored backup has another ledger identity than its buckets: the copy may lack
//! records that the sessions in memory rest on.

use crate::buckets::ALONE;
use crate::database::{OwnBuckets, SoleUseLock, refuse_in_sole_use};
use crate::nodes::leave_to_sole_user;
use crate::row::stored_whole;
use crate::{Error, Ledger};

/// The sole use of a ledger. A drop ends the sole use.
pub struct SoleUse {
    /// The epoch of all buckets.
    epoch: u64,
    /// The registry identity of all buckets.
    registry_identity: String,
    lock: Option<SoleUseLock>,
}

impl Ledger {
    /// Takes the ledger for this process alone, and raises all buckets to a new common epoch, with registry
    /// `registry_identity`, which must be unique to this start of the process, and the random bits `random`.
    ///
    /// Returns `Err(InUse)` beside another process that uses the ledger alone, and `Err(NodesServe)` beside nodes that
    /// share a registry. Silent nodes without a lease are forgotten.
    pub async fn take_alone(&self, registry_identity: &str, random: u16) -> Result<SoleUse, Error> {
        let lock = SoleUseLock::take(self.writer()).await?;
        if lock.is_some() {
            let mut tx = self.write().await?;
            leave_to_sole_user(&mut tx).await?;
            tx.commit().await?;
        }
        let registry_identity = format!("{ALONE}{registry_identity}");
        let epoch = self.raise_epoch(&registry_identity, random).await?;
        Ok(SoleUse { epoch, registry_identity, lock })
    }

    /// Returns whether no bucket is left from a process that used the ledger alone: nodes have raised each bucket since, and
    /// the ledger refuses late changes of the process.
    pub async fn is_raised_by_nodes(&self) -> Result<bool, Error> {
        let read = self.readers().query(include_str!("../sql/is_raised_by_nodes.sql"));
        Ok(read.bind(format!("{ALONE}%")).scalar().await?)
    }

    /// Returns `Err(InUse)` while a process uses the ledger alone.
    pub async fn check_shareable(&self) -> Result<(), Error> {
        refuse_in_sole_use(&mut self.write().await?).await
    }
}

impl SoleUse {
    /// Returns the epoch of all buckets.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns whether another process can take the ledger while this one lives, because a lost connection loses the
    /// lock.
    pub fn may_be_lost(&self) -> bool {
        self.lock.is_some()
    }

    /// Checks that no other process has taken the ledger and that no copy has replaced the ledger. Takes a lost lock
    /// again. The call may be dropped at any time.
    ///
    /// Returns `Err(TakenOver)` unless every bucket has the epoch and the registry identity of this process, raised in
    /// this ledger. The epoch alone proves neither: a copy made after the start has the same epoch, and another
    /// process may raise an older copy to the same epoch.
    pub async fn check(&self) -> Result<(), Error> {
        let Some(lock) = &self.lock else { return Ok(()) };
        let own = OwnBuckets { epoch: stored_whole(self.epoch), registry_identity: &self.registry_identity };
        if lock.owns_buckets(own).await? { Ok(()) } else { Err(Error::TakenOver) }
    }

    /// Ends the sole use: the next process may take the ledger.
    pub async fn end(&self) {
        if let Some(lock) = &self.lock {
            lock.free().await;
        }
    }
}
