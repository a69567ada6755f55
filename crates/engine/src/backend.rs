//! A registry in its role, with the ledger's progress. Every decision by role is made in this module: callers
//! never match on a role.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use seatkeeper_core::{Bucket, PoolId, RegistryTime, Terms};
use seatkeeper_ledger::{Ledger, LivePool};
use seatkeeper_registry::{Epochs, Error as RegistryError, Receipt, Registry};
use tracing::Instrument as _;

use crate::commits::{Commits, Overtaken};
use crate::durability::Durability;
use crate::error::Error;
use crate::failover::EpochLease;

/// The most sessions admitted into a node's own memory during an outage.
const NODE_LOCAL_SESSIONS_MAX: usize = 10_000;

/// A registry in its role, with the ledger's progress through the registry's journal. A clone shares the
/// backend's state.
#[derive(Clone)]
pub struct Backend {
    /// The registry.
    pub registry: Arc<dyn Registry>,
    /// The progress of the ledger with the registry's journal.
    pub commits: Arc<Commits>,
    /// The start of the latest sweep that left nothing to do; `None` before the first, and without a sweeper.
    pub swept: Arc<Mutex<Option<Instant>>>,
    role: Role,
}

/// The role of a registry: the basis of the registry's answers.
#[derive(Clone)]
enum Role {
    /// The only registry of a process without failover. Serves always.
    Lasting,
    /// A registry under failover. Serves in these epochs.
    Rebuilt(Arc<Epochs>),
    /// The memory of this node during an outage of the registry or of a home, without the sessions of other
    /// nodes. Counts the live sessions on record.
    NodeLocal(Arc<AtomicUsize>),
}

impl Backend {
    /// Returns the backend of a registry that failover never replaces.
    pub fn lasting(registry: Arc<dyn Registry>, commits: Commits) -> Self {
        Self::new(registry, commits, Role::Lasting)
    }

    /// Returns the backend of a registry that serves in `epochs`.
    pub(crate) fn rebuilt(registry: Arc<dyn Registry>, commits: Commits, epochs: Arc<Epochs>) -> Self {
        Self::new(registry, commits, Role::Rebuilt(epochs))
    }

    /// Returns the backend of this node's empty memory, for decisions of this node alone.
    pub(crate) fn node_local(registry: Arc<dyn Registry>, commits: Commits) -> Self {
        Self::new(registry, commits, Role::NodeLocal(Arc::default()))
    }

    fn new(registry: Arc<dyn Registry>, commits: Commits, role: Role) -> Self {
        Self { registry, commits: Arc::new(commits), swept: Arc::default(), role }
    }

    /// Returns whether the backend serves any bucket now.
    pub fn serves_any(&self) -> bool {
        match &self.role {
            Role::Rebuilt(epochs) => Bucket::all().any(|bucket| epochs.get(bucket) != Epochs::NONE),
            Role::Lasting | Role::NodeLocal(_) => true,
        }
    }

    /// Returns whether the backend serves in every epoch, without failover.
    pub(crate) fn always_serves(&self) -> bool {
        match self.role {
            Role::Lasting => true,
            Role::Rebuilt(_) | Role::NodeLocal(_) => false,
        }
    }

    /// Returns whether sessions of the backend's pools may be live on other nodes, unknown to this backend.
    pub(crate) fn is_partial(&self) -> bool {
        match self.role {
            Role::NodeLocal(_) => true,
            Role::Lasting | Role::Rebuilt(_) => false,
        }
    }

    /// Returns `Err` if the backend has no room for one more session of the bucket.
    pub(crate) fn check_room(&self, bucket: Bucket) -> Result<(), RegistryError> {
        match &self.role {
            Role::NodeLocal(sessions) if sessions.load(Relaxed) >= NODE_LOCAL_SESSIONS_MAX => {
                Err(RegistryError::NotServing { bucket })
            }
            Role::NodeLocal(_) | Role::Lasting | Role::Rebuilt(_) => Ok(()),
        }
    }

    /// Returns whether a node-local backend has a live session on record.
    pub(crate) fn is_in_use(&self) -> bool {
        match &self.role {
            Role::NodeLocal(sessions) => sessions.load(Relaxed) > 0,
            Role::Lasting | Role::Rebuilt(_) => false,
        }
    }

    /// Counts recorded admissions and ends of a node-local registry. A session's end never precedes the
    /// session's admission.
    pub(crate) fn count_recorded(&self, admitted: usize, ended: usize) {
        if let Role::NodeLocal(sessions) = &self.role {
            sessions.fetch_add(admitted, Relaxed);
            sessions.fetch_sub(ended, Relaxed);
        }
    }

    /// Checks that an answer given in `epoch` still holds. An event committed to the ledger in its epoch needs no
    /// check, unless the registry is node-local. A registry without failover answers until its process loses the
    /// ledger.
    pub(crate) async fn check_answer(
        &self,
        lease: &EpochLease,
        (bucket, epoch): (Bucket, u64),
        is_on_record: bool,
    ) -> Result<(), RegistryError> {
        match self.role {
            Role::Lasting | Role::Rebuilt(_) if is_on_record => Ok(()),
            Role::Lasting => lease.check_ownership(bucket),
            Role::Rebuilt(_) | Role::NodeLocal(_) => lease.check(bucket, epoch).await,
        }
    }

    /// Opens a pool with its live sessions from the ledger, if `check` allows. A node-local registry begins with no
    /// sessions. The pool stays closed if the check and the reading of the ledger took so long that they may be outdated:
    /// a node may be suspended between two steps.
    pub(crate) async fn open(
        &self,
        ledger: &Ledger,
        pool: &PoolId,
        terms: Option<Terms>,
        check: impl Future<Output = Result<(), Error>>,
    ) -> Result<(), Error> {
        let Some(closed_at) = self.registry.closed_at(pool).await? else { return Ok(()) };
        check.await?;
        if let Role::NodeLocal(_) = self.role {
            return Ok(self.registry.open_if_recent(closed_at, pool, 0, terms, Vec::new()).await?);
        }
        // The number and the sessions are one snapshot: a later decision in this pool follows the record, or the
        // ledger refuses the decision.
        let LivePool { seq, sessions, .. } = ledger.pool_head(pool).await?;
        Ok(self.registry.open_if_recent(closed_at, pool, seq, terms, sessions).await?)
    }

    /// Queues a rebuild of a bucket whose registry contradicts the ledger in `epoch`. Returns `false` if the
    /// backend is never rebuilt.
    pub(crate) fn suspect(&self, lease: &EpochLease, bucket: Bucket, epoch: u64) -> bool {
        match self.role {
            Role::Rebuilt(_) => {
                lease.suspect(bucket, epoch);
                true
            }
            Role::Lasting | Role::NodeLocal(_) => false,
        }
    }

    /// Returns the time of the first heartbeat that still has to be flushed to the ledger, on a node that
    /// starts at `now`. A node in a cluster flushes only its own heartbeats, so the time is zero.
    pub(crate) fn flushes_since(&self, now: RegistryTime) -> RegistryTime {
        match self.role {
            Role::Rebuilt(_) => RegistryTime::default(),
            Role::Lasting | Role::NodeLocal(_) => now,
        }
    }

    /// Waits until an answer of this durability may be sent. An answer of a node-local registry always waits
    /// for its commit.
    pub(crate) async fn settled(
        &self,
        receipt: Receipt,
        durability: Durability,
        timeout: Duration,
    ) -> Result<(), Error> {
        match (durability, &self.role) {
            (Durability::Ledger, _) | (Durability::Journal, Role::NodeLocal(_)) => {
                self.durable(receipt, timeout).await
            }
            (Durability::Journal, Role::Lasting | Role::Rebuilt(_)) => {
                self.commits.keep_up(receipt, self.registry.journal_depth() as u64).await;
                Ok(())
            }
        }
    }

    /// Waits until the ledger has every event up to `receipt`.
    pub(crate) async fn durable(&self, receipt: Receipt, timeout: Duration) -> Result<(), Error> {
        let committed = tokio::time::timeout(timeout, self.commits.reached(receipt));
        match committed.instrument(tracing::debug_span!("record")).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Overtaken)) | Err(_) => Err(Error::NotDurable),
        }
    }
}
