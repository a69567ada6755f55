//! The lease on the epochs: each bucket's epoch and mode, and the time until which this node may answer in
//! that epoch.
//!
//! Invariant: a node answers in an epoch only within [`LEASE`] of an instant at which the epoch was certainly
//! current. A reading of the ledger proves the epoch ([`EpochLease::confirm`]). While the ledger is
//! unreachable for all nodes, the roll call proves it ([`EpochLease::vouch`]): no node can raise an epoch
//! without the ledger. Only the ledger restores a lapsed lease, since an epoch may have been raised
//! meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use seatkeeper_core::{Bucket, Span};
use seatkeeper_host_clock::HostInstant;
use seatkeeper_ledger::buckets::{BucketMode, BucketRow};
use seatkeeper_ledger::nodes::KnownNode;
use seatkeeper_registry::{Epochs, Error as RegistryError};
use tokio::sync::{Notify, watch};

use super::membership::live;
use super::ownership::{NotProved, Ownership};
use super::{LEASE, Reach};
use crate::error::Unready;

/// A lease is extended without the ledger for this time after the latest reading. The ledger remembers a silent
/// node for an hour longer.
const VOUCHED_MAX: Duration = Duration::from_secs(24 * 3_600);

/// The longest wait of an answer for a renewal of the lease.
const RENEWAL_WAIT_MAX: Duration = Duration::from_secs(3);

/// The epochs and modes of all buckets by the latest reading of the ledger, with a lease on the epochs.
pub(crate) struct EpochLease {
    basis: Basis,
}

/// The reason why the epochs of this process are current.
enum Basis {
    /// No other process can raise an epoch.
    Alone,
    /// A single server, whose ledger another process can take.
    Owned(Ownership),
    /// A node in a cluster.
    Shared(Shared),
}

/// The epochs in which this node's registries serve the buckets.
#[derive(Clone, Default)]
pub(crate) struct KnownEpochs {
    /// The epochs in which the configured registry serves.
    pub(crate) main: Arc<Epochs>,
    /// The epochs in which the standby serves in place of the configured registry.
    pub(crate) standby: Arc<Epochs>,
    /// The epochs of all buckets in every mode.
    pub(crate) all: Arc<Epochs>,
}

struct Shared {
    known: KnownEpochs,
    reach: Arc<Reach>,
    needs_ledger: bool,
    rows: Mutex<Arc<[BucketRow]>>,
    nodes: Mutex<Arc<[KnownNode]>>,
    term: watch::Sender<Term>,
    reading_wanted: Notify,
    /// Suspected buckets, each with its epoch at the time of the suspicion.
    suspects: Mutex<BTreeMap<Bucket, u64>>,
}

/// The state of the lease.
#[derive(Clone, Copy, Debug, Default)]
struct Term {
    /// The latest instant at which the ledger, or all other nodes, proved the epochs.
    vouched: Option<HostInstant>,
    /// The latest reading with success.
    read: Option<HostInstant>,
    /// The latest reading of the ledger failed.
    is_without_ledger: bool,
    /// The ledger has not answered the present reading for a while.
    is_ledger_late: bool,
    /// The lease was over, and the ledger has not been read since.
    has_lapsed: bool,
}

impl Term {
    fn holds(self, now: HostInstant) -> bool {
        !self.has_lapsed && self.vouched.is_some_and(|vouched| now.saturating_duration_since(vouched) < LEASE)
    }

    /// Returns whether other nodes may extend the lease.
    fn may_be_vouched_for(self, now: HostInstant) -> bool {
        self.holds(now) && self.read.is_some_and(|read| now.saturating_duration_since(read) < VOUCHED_MAX)
    }
}

impl EpochLease {
    /// Returns the lease of a single server, which never ends.
    pub(crate) fn unshared() -> Self {
        Self { basis: Basis::Alone }
    }

    /// Returns the lease of a single server that owned its ledger at `proved`, and whose ledger another process can
    /// take.
    pub(crate) fn owned(proved: HostInstant) -> Self {
        Self { basis: Basis::Owned(Ownership::new(proved)) }
    }

    fn shared_basis(&self) -> Option<&Shared> {
        match &self.basis {
            Basis::Shared(shared) => Some(shared),
            Basis::Alone | Basis::Owned(_) => None,
        }
    }

    fn ownership(&self) -> Option<&Ownership> {
        match &self.basis {
            Basis::Owned(ownership) => Some(ownership),
            Basis::Alone | Basis::Shared(_) => None,
        }
    }

    /// Returns the lease of a node in a cluster. `known` holds the epochs demanded by the registries, and
    /// starts empty. With `needs_ledger`, the node is not ready while the ledger is unreachable.
    pub(crate) fn shared(known: KnownEpochs, reach: Arc<Reach>, needs_ledger: bool) -> Self {
        let shared = Shared {
            known,
            reach,
            needs_ledger,
            rows: Mutex::new(Arc::new([])),
            nodes: Mutex::new(Arc::new([])),
            term: watch::Sender::new(Term::default()),
            reading_wanted: Notify::new(),
            suspects: Mutex::default(),
        };
        Self { basis: Basis::Shared(shared) }
    }

    /// Returns the epoch for calls on a bucket; [`Epochs::NONE`] if no registry serves the bucket or the
    /// lease has lapsed.
    pub(crate) fn epoch(&self, bucket: Bucket) -> u64 {
        self.shared_basis().map_or(Epochs::NONE, |shared| shared.known.served(bucket))
    }

    /// Checks that the lease covers `epoch`, in which a call on the bucket was answered. Waits for a renewal
    /// if the lease is over, up to [`RENEWAL_WAIT_MAX`].
    pub(crate) async fn check(&self, bucket: Bucket, epoch: u64) -> Result<(), RegistryError> {
        let Some(shared) = self.shared_basis() else { return self.check_ownership(bucket) };
        if !shared.term.borrow().holds(HostInstant::now()) {
            shared.renewed().await.map_err(|_| RegistryError::NotServing { bucket })?;
        }
        if shared.known.served(bucket) == epoch { Ok(()) } else { Err(RegistryError::NotServing { bucket }) }
    }

    /// Returns the latest epoch of a bucket on record, served or not.
    pub(crate) fn raised(&self, bucket: Bucket) -> u64 {
        self.shared_basis().map_or(Epochs::NONE, |shared| shared.known.all.get(bucket))
    }

    /// Notes that a registry has lost memory of a bucket in this epoch, or contradicts the ledger. The bucket
    /// is rebuilt, unless its epoch has been raised meanwhile.
    pub(crate) fn suspect(&self, bucket: Bucket, epoch: u64) {
        if let Some(shared) = self.shared_basis() {
            tracing::warn!(
                bucket = bucket.number(),
                "registry and ledger disagree on a bucket: it is rebuilt from the ledger"
            );
            shared.suspects.lock().insert(bucket, epoch);
        }
    }

    /// Requests another reading of the rows, because a row has changed. An owner checks its ownership.
    pub(crate) fn read_again(&self) {
        match &self.basis {
            Basis::Shared(shared) => shared.reading_wanted.notify_one(),
            Basis::Owned(ownership) => ownership.request_check(),
            Basis::Alone => {}
        }
    }

    /// Notes that no other process had taken the ledger of this single server at `at`.
    pub(crate) fn prove_ownership(&self, at: HostInstant) {
        if let Some(ownership) = self.ownership() {
            ownership.prove(at);
        }
    }

    /// Notes the loss of the ledger. No later proof counts.
    pub(crate) fn lose_ownership(&self) {
        if let Some(ownership) = self.ownership() {
            ownership.lose();
        }
    }

    /// Returns `Err(NotServing)` if this single server has lost its ledger.
    pub(crate) fn check_ownership(&self, bucket: Bucket) -> Result<(), RegistryError> {
        let checked = self.ownership().map_or(Ok(()), Ownership::check);
        checked.map_err(|NotProved| RegistryError::NotServing { bucket })
    }

    /// Returns the longest promise for a session of this TTL in an answer that rests on no commit; `None` without a
    /// limit. `Err(NotServing)` if the ledger of this single server may have had another owner for a TTL.
    pub(crate) fn promise_max(&self, bucket: Bucket, ttl: Span) -> Result<Option<Span>, RegistryError> {
        let Some(ownership) = self.ownership() else { return Ok(None) };
        let max = ownership.promise_max(ttl, HostInstant::now());
        max.map(Some).map_err(|NotProved| RegistryError::NotServing { bucket })
    }

    /// Returns `Err(NotServing)` if the ledger of this single server was not proved to be the server's own within the last
    /// seconds.
    pub(crate) fn check_recent_proof(&self, bucket: Bucket) -> Result<(), RegistryError> {
        let Some(ownership) = self.ownership() else { return Ok(()) };
        ownership.check_recent(HostInstant::now()).map_err(|NotProved| RegistryError::NotServing { bucket })
    }

    /// Returns `Err` with the reason if this node should get no requests at present. A single server is always ready.
    pub(crate) fn readiness(&self) -> Result<(), Unready> {
        let Some(shared) = self.shared_basis() else { return Ok(()) };
        let (rows, unreachable) = (self.rows(), shared.reach.unreachable());
        let is_cut_off =
            |row: &BucketRow| row.mode == BucketMode::Registry && unreachable.contains(row.bucket);
        let is_held_back = shared.reach.is_held_back();
        if shared.needs_ledger && !self.reaches_ledger() {
            Err(Unready::NoLedger)
        } else if rows.is_empty() || !self.holds() {
            Err(Unready::NoLease)
        } else if rows.iter().any(is_cut_off) {
            Err(if is_held_back { Unready::HeldBack } else { Unready::NoRegistry })
        } else if shared.reach.is_mostly_unserved() {
            Err(if is_held_back { Unready::HeldBack } else { Unready::NotServed })
        } else {
            Ok(())
        }
    }

    /// Returns whether the lease holds now.
    pub(crate) fn holds(&self) -> bool {
        self.shared_basis().is_none_or(|shared| shared.term.borrow().holds(HostInstant::now()))
    }

    /// Returns whether the latest reading of the rows succeeded.
    pub(crate) fn reaches_ledger(&self) -> bool {
        self.shared_basis().is_none_or(|shared| !shared.term.borrow().is_without_ledger)
    }

    /// Returns whether this node reports the ledger as lost on the roll: the latest reading failed, or the
    /// present reading takes long. The report comes before [`reaches_ledger`](Self::reaches_ledger) changes,
    /// so that every node has reported before a lease is over.
    pub(super) fn misses_ledger(&self) -> bool {
        let Some(shared) = self.shared_basis() else { return false };
        let term = shared.term.borrow();
        term.is_without_ledger || term.is_ledger_late
    }

    /// Notes that the ledger has not answered a reading for a while.
    pub(super) fn ledger_is_late(&self) {
        if let Some(shared) = self.shared_basis() {
            shared.term.send_modify(|term| term.is_ledger_late = true);
        }
    }

    /// Returns the mode of a bucket.
    pub(crate) fn mode(&self, bucket: Bucket) -> BucketMode {
        let Some(shared) = self.shared_basis() else { return BucketMode::Registry };
        let mode = shared.rows.lock().get(usize::from(bucket.number())).map(|row| row.mode);
        mode.unwrap_or(BucketMode::Registry)
    }

    /// Returns the rows of the latest reading, in the order of buckets; empty before the first reading.
    pub(super) fn rows(&self) -> Arc<[BucketRow]> {
        self.shared_basis().map_or_else(|| Arc::new([]) as _, |shared| Arc::clone(&shared.rows.lock()))
    }

    /// Returns all nodes by the latest reading of the ledger.
    pub(super) fn nodes(&self) -> Arc<[KnownNode]> {
        self.shared_basis().map_or_else(|| Arc::new([]) as _, |shared| Arc::clone(&shared.nodes.lock()))
    }

    /// Returns whether every live node reaches the registry of every bucket, by the latest reading of the ledger.
    pub(crate) fn is_registry_reached_by_all(&self) -> bool {
        live(&self.nodes()).iter().all(|node| node.unreachable.is_empty())
    }

    /// Takes the buckets suspected since the last call, each with its epoch at the time of the suspicion.
    pub(super) fn take_suspects(&self) -> BTreeMap<Bucket, u64> {
        self.shared_basis()
            .map_or_else(BTreeMap::default, |shared| std::mem::take(&mut *shared.suspects.lock()))
    }

    /// Stores a reading of the ledger that began at `began`, and renews the lease.
    pub(super) fn confirm(&self, began: HostInstant, nodes: Vec<KnownNode>, rows: Vec<BucketRow>) {
        let Some(shared) = self.shared_basis() else { return };
        for row in &rows {
            shared.known.note(row);
        }
        *shared.rows.lock() = rows.into();
        *shared.nodes.lock() = nodes.into();
        // The term is written last: a reader of the new term must find the epochs of the same reading.
        shared.term.send_replace(Term { vouched: Some(began), read: Some(began), ..Term::default() });
    }

    /// Notes a failed reading of the ledger. Returns whether the reading before had succeeded.
    pub(super) fn not_confirmed(&self) -> bool {
        let Some(shared) = self.shared_basis() else { return false };
        let mut is_first = false;
        shared.term.send_modify(|term| {
            is_first = !term.is_without_ledger;
            term.is_without_ledger = true;
        });
        is_first
    }

    /// Extends a lease that is not over, up to [`VOUCHED_MAX`] after the latest reading. By the roll call, no node
    /// reached the ledger at `at`.
    pub(super) fn vouch(&self, at: HostInstant) {
        let Some(shared) = self.shared_basis() else { return };
        shared.term.send_if_modified(|term| {
            let renews = term.may_be_vouched_for(HostInstant::now())
                && term.vouched.is_none_or(|vouched| vouched < at);
            if renews {
                term.vouched = Some(at);
            }
            renews
        });
    }

    /// Lets an expired lease lapse: this node serves no bucket until the next reading of the ledger. Returns
    /// whether this call let the lease lapse.
    pub(super) fn lapse_if_over(&self) -> bool {
        let Some(shared) = self.shared_basis() else { return false };
        shared.term.send_if_modified(|term| {
            let lapses = term.vouched.is_some() && !term.has_lapsed && !term.holds(HostInstant::now());
            if lapses && term.is_without_ledger {
                term.has_lapsed = true;
                shared.known.forget();
                return true;
            }
            false
        })
    }

    /// Waits until the rows are of a reading begun at `instant` or later.
    pub(super) async fn read_since(&self, instant: HostInstant) {
        let Some(shared) = self.shared_basis() else { return };
        let is_later = |term: &Term| term.read.is_some_and(|read| read >= instant);
        // The sender lives as long as `self`.
        let _ = shared.term.subscribe().wait_for(is_later).await;
    }

    /// Waits until an early reading of the rows, or an early check of the ownership, is requested.
    pub(crate) async fn reading_wanted(&self) {
        match &self.basis {
            Basis::Shared(shared) => shared.reading_wanted.notified().await,
            Basis::Owned(ownership) => ownership.check_wanted().await,
            Basis::Alone => std::future::pending().await,
        }
    }
}

impl KnownEpochs {
    /// Returns the epoch in which a bucket is served, by either registry.
    fn served(&self, bucket: Bucket) -> u64 {
        self.main.get(bucket).max(self.standby.get(bucket))
    }

    fn note(&self, row: &BucketRow) {
        let (main, standby) = match row.mode {
            BucketMode::Registry => (row.epoch, Epochs::NONE),
            BucketMode::Ledger | BucketMode::Allow => (Epochs::NONE, row.epoch),
            BucketMode::Deny => (Epochs::NONE, Epochs::NONE),
        };
        self.main.set(row.bucket, main);
        self.standby.set(row.bucket, standby);
        self.all.set(row.bucket, row.epoch);
    }

    /// Forgets the serving epochs: no bucket is served.
    fn forget(&self) {
        for bucket in Bucket::all() {
            self.main.set(bucket, Epochs::NONE);
            self.standby.set(bucket, Epochs::NONE);
        }
    }
}

/// The lease was not renewed within [`RENEWAL_WAIT_MAX`].
struct NotRenewed;

impl Shared {
    /// Waits until the lease is renewed.
    async fn renewed(&self) -> Result<(), NotRenewed> {
        let mut terms = self.term.subscribe();
        let renewed = async {
            loop {
                self.reading_wanted.notify_one();
                // The sender lives as long as `self`.
                if terms.changed().await.is_err() || terms.borrow_and_update().holds(HostInstant::now()) {
                    return;
                }
            }
        };
        tokio::time::timeout(RENEWAL_WAIT_MAX, renewed).await.map_err(|_| NotRenewed)
    }
}

#[cfg(test)]
mod tests;
