//! A registry in its role, with the ledger's progress. Whatever depends on the role is decided here.

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

/// The most sessions that a node admits into its own memory during an outage.
const NODE_LOCAL_SESSIONS_MAX: usize = 10_000;

/// A registry in its role, with the progress of the ledger with its journal. A clone is the same backend.
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

/// The role of a registry: what its answers rest on.
#[derive(Clone)]
enum Role {
    /// No other registry can take its place, so it always serves.
    Lasting,
    /// Another registry can take its place: it serves in these epochs.
    Rebuilt(Arc<Epochs>),
    /// The memory of this node during an outage, which knows no other node's sessions. Counts the sessions that are on record
    /// and not over.
    NodeLocal(Arc<AtomicUsize>),
}

impl Backend {
    /// A registry whose place no other can take.
    pub fn lasting(registry: Arc<dyn Registry>, commits: Commits) -> Self {
        Self::new(registry, commits, Role::Lasting)
    }

    /// A registry that serves in these epochs.
    pub(crate) fn rebuilt(registry: Arc<dyn Registry>, commits: Commits, epochs: Arc<Epochs>) -> Self {
        Self::new(registry, commits, Role::Rebuilt(epochs))
    }

    /// An empty registry by which this node decides alone.
    pub(crate) fn node_local(registry: Arc<dyn Registry>, commits: Commits) -> Self {
        Self::new(registry, commits, Role::NodeLocal(Arc::default()))
    }

    fn new(registry: Arc<dyn Registry>, commits: Commits, role: Role) -> Self {
        Self { registry, commits: Arc::new(commits), swept: Arc::default(), role }
    }

    /// Returns whether the backend serves any bucket now.
    pub fn serves_any(&self) -> bool {
        match &self.role {
            Role::Rebuilt(epochs) => Bucket::all().any(|bucket| epochs.of(bucket) != Epochs::NONE),
            Role::Lasting | Role::NodeLocal(_) => true,
        }
    }

    /// Returns whether the backend serves in every epoch.
    pub(crate) fn always_serves(&self) -> bool {
        match self.role {
            Role::Lasting => true,
            Role::Rebuilt(_) | Role::NodeLocal(_) => false,
        }
    }

    /// Returns whether sessions of its pools may be live elsewhere, unknown to this backend.
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

    /// Counts sessions of this node alone that came on record. No session ends before it began.
    pub(crate) fn count_recorded(&self, admitted: usize, ended: usize) {
        if let Role::NodeLocal(sessions) = &self.role {
            sessions.fetch_add(admitted, Relaxed);
            sessions.fetch_sub(ended, Relaxed);
        }
    }

    /// Checks that an answer of `epoch` still holds. An admission on record is one of its epoch, so it needs no check, unless
    /// this node alone recorded it.
    pub(crate) async fn check_answer(
        &self,
        lease: &EpochLease,
        (bucket, epoch): (Bucket, u64),
        is_recorded_admission: bool,
    ) -> Result<(), RegistryError> {
        match self.role {
            Role::Lasting => Ok(()),
            Role::Rebuilt(_) if is_recorded_admission => Ok(()),
            Role::Rebuilt(_) | Role::NodeLocal(_) => lease.check(bucket, epoch).await,
        }
    }

    /// Opens a pool with its sessions on record; this node alone begins with none.
    pub(crate) async fn open(
        &self,
        ledger: &Ledger,
        pool: &PoolId,
        terms: Option<Terms>,
    ) -> Result<(), Error> {
        let (seq, sessions) = match self.role {
            Role::NodeLocal(_) => (0, Vec::new()),
            Role::Lasting | Role::Rebuilt(_) => {
                // Number and sessions of one instant: a later decision in this pool follows on the record, or is refused by
                // the ledger.
                let LivePool { seq, sessions, .. } = ledger.pool_head(pool).await?;
                (seq, sessions)
            }
        };
        Ok(self.registry.open(pool, seq, terms, sessions).await?)
    }

    /// Has a bucket rebuilt whose registry contradicts the record in this epoch. Returns `false` if the backend is never
    /// rebuilt.
    pub(crate) fn suspect(&self, lease: &EpochLease, bucket: Bucket, epoch: u64) -> bool {
        match self.role {
            Role::Rebuilt(_) => {
                lease.suspect(bucket, epoch);
                true
            }
            Role::Lasting | Role::NodeLocal(_) => false,
        }
    }

    /// The time of the first heartbeat that is still to be written down, on a node that starts at `now`. A node among others
    /// knows only of its own heartbeats, and begins with none.
    pub(crate) fn flushes_since(&self, now: RegistryTime) -> RegistryTime {
        match self.role {
            Role::Rebuilt(_) => RegistryTime::default(),
            Role::Lasting | Role::NodeLocal(_) => now,
        }
    }

    /// Waits until an answer of this durability may be given. An answer of this node alone waits for its record in any case.
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

    /// Waits until the ledger has all up to `receipt`.
    pub(crate) async fn durable(&self, receipt: Receipt, timeout: Duration) -> Result<(), Error> {
        let committed = tokio::time::timeout(timeout, self.commits.reached(receipt));
        match committed.instrument(tracing::debug_span!("record")).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Overtaken)) | Err(_) => Err(Error::NotDurable),
        }
    }
}
