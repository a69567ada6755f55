//! Where a node stands: the epoch and mode of each bucket, as it last read them, and how long ago that was.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use seatkeeper_core::{Bucket, BucketSet};
use seatkeeper_ledger::{BucketMode, BucketRow, NodeRow};
use seatkeeper_registry::{Epochs, Error as RegistryError};
use tokio::sync::{Notify, watch};

use super::{LEASE, Reach};

/// How long an answer waits at most for the rows to be read again.
const READING_WAIT_MAX: Duration = Duration::from_secs(3);

/// What this node knows, and how recent that is.
pub(crate) struct Bearings {
    /// None on a server that is alone, whose registry is its own: nobody else ever changes anything.
    shared: Option<Shared>,
}

/// What the registries of a node demand of each bucket.
#[derive(Clone, Default)]
pub(crate) struct Known {
    /// The epochs in which the one serves that is configured.
    pub(crate) main: Arc<Epochs>,
    /// Those in which another one takes its place.
    pub(crate) standby: Arc<Epochs>,
    /// Those of all buckets, whatever serves them.
    pub(crate) all: Arc<Epochs>,
}

struct Shared {
    known: Known,
    reach: Arc<Reach>,
    needs_ledger: bool,
    rows: Mutex<Arc<[BucketRow]>>,
    nodes: Mutex<Arc<[NodeRow]>>,
    reading: watch::Sender<Reading>,
    reading_wanted: Notify,
    suspects: Mutex<BucketSet>,
}

/// The latest try to read the rows.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    /// When it began, if the ledger could not be reached.
    failed: Option<Instant>,
    /// When the latest one began that succeeded.
    confirmed: Option<Instant>,
}

impl Reading {
    /// Whether answers may be given by what is known: it was confirmed lately, or nobody can raise an epoch because
    /// nobody reaches the ledger.
    fn is_recent(self, now: Instant) -> bool {
        let is_recent = |began: Instant| now.duration_since(began) < LEASE;
        self.confirmed.is_some_and(is_recent) || self.failed.is_some_and(is_recent)
    }
}

impl Bearings {
    /// Those of a server that is alone.
    pub(crate) fn alone() -> Self {
        Self { shared: None }
    }

    /// Those of one of several, which reaches so much. `known` is what the registries demand of each bucket; nothing is
    /// served yet. With `needs_ledger`, nothing is where the ledger is out of reach.
    pub(crate) fn shared(known: Known, reach: Arc<Reach>, needs_ledger: bool) -> Self {
        let shared = Shared {
            known,
            reach,
            needs_ledger,
            rows: Mutex::new(Arc::new([])),
            nodes: Mutex::new(Arc::new([])),
            reading: watch::Sender::new(Reading::default()),
            reading_wanted: Notify::new(),
            suspects: Mutex::default(),
        };
        Self { shared: Some(shared) }
    }

    /// The epoch in which calls on a bucket are made now.
    pub(crate) fn epoch(&self, bucket: Bucket) -> u64 {
        self.shared.as_ref().map_or(Epochs::NONE, |shared| shared.known.served(bucket))
    }

    /// Whether `epoch`, in which a call was made, is still the bucket's. If that was not read lately, this waits until
    /// it is read again.
    pub(crate) async fn still(&self, bucket: Bucket, epoch: u64) -> Result<(), RegistryError> {
        let Some(shared) = &self.shared else { return Ok(()) };
        if !shared.reading.borrow().is_recent(Instant::now()) {
            shared.read_again().await.map_err(|_| RegistryError::NotServing { bucket })?;
        }
        if shared.known.served(bucket) == epoch { Ok(()) } else { Err(RegistryError::NotServing { bucket }) }
    }

    /// The registry has lost memory of this bucket, or it contradicts the ledger: it must be rebuilt.
    pub(crate) fn suspect(&self, bucket: Bucket) {
        if let Some(shared) = &self.shared {
            tracing::warn!(
                bucket = bucket.number(),
                "the registry and the ledger do not agree; the bucket is rebuilt"
            );
            shared.suspects.lock().insert(bucket);
        }
    }

    /// The rows are to be read again, for one of them has changed.
    pub(crate) fn read_again(&self) {
        if let Some(shared) = &self.shared {
            shared.reading_wanted.notify_one();
        }
    }

    /// Whether this node should be asked: it knows where things stand, and reaches every registry that the others
    /// reach. None on a server that is alone.
    pub(crate) fn are_served(&self) -> Option<bool> {
        let shared = self.shared.as_ref()?;
        let (rows, unreachable) = (self.rows(), shared.reach.unreachable());
        let is_cut_off =
            |row: &BucketRow| row.mode == BucketMode::Registry && unreachable.contains(row.bucket);
        let has_ledger = !shared.needs_ledger || self.reaches_ledger();
        Some(has_ledger && !rows.is_empty() && !rows.iter().any(is_cut_off))
    }

    /// Whether the latest try to read the rows succeeded.
    pub(crate) fn reaches_ledger(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.reading.borrow().failed.is_none())
    }

    /// The mode of a bucket.
    pub(crate) fn mode(&self, bucket: Bucket) -> BucketMode {
        let Some(shared) = &self.shared else { return BucketMode::Registry };
        let mode = shared.rows.lock().get(usize::from(bucket.number())).map(|row| row.mode);
        mode.unwrap_or(BucketMode::Registry)
    }

    /// The rows as they were last read, in the order of buckets; none yet.
    pub(super) fn rows(&self) -> Arc<[BucketRow]> {
        self.shared.as_ref().map_or_else(|| Arc::new([]) as _, |shared| Arc::clone(&shared.rows.lock()))
    }

    /// The nodes that live, as they were last read.
    pub(super) fn nodes(&self) -> Arc<[NodeRow]> {
        self.shared.as_ref().map_or_else(|| Arc::new([]) as _, |shared| Arc::clone(&shared.nodes.lock()))
    }

    /// The buckets that were suspected since the last call.
    pub(super) fn take_suspects(&self) -> BucketSet {
        self.shared
            .as_ref()
            .map_or_else(BucketSet::default, |shared| std::mem::take(&mut *shared.suspects.lock()))
    }

    /// Notes what a reading found that began at `began`.
    pub(super) fn confirm(&self, began: Instant, nodes: Vec<NodeRow>, rows: Vec<BucketRow>) {
        let Some(shared) = &self.shared else { return };
        for row in &rows {
            shared.known.note(row);
        }
        *shared.rows.lock() = rows.into();
        *shared.nodes.lock() = nodes.into();
        // Only now: whoever sees it finds the epochs that it stands for.
        shared.reading.send_replace(Reading { failed: None, confirmed: Some(began) });
    }

    /// Notes that a reading failed that began at `began`; says whether the one before it did not.
    pub(super) fn not_confirmed(&self, began: Instant) -> bool {
        let Some(shared) = &self.shared else { return false };
        let mut is_first = false;
        shared.reading.send_modify(|reading| {
            is_first = reading.failed.is_none();
            reading.failed = Some(began);
        });
        is_first
    }

    /// Returns when the rows are wanted before it is time.
    pub(super) async fn reading_wanted(&self) {
        match &self.shared {
            Some(shared) => shared.reading_wanted.notified().await,
            None => std::future::pending().await,
        }
    }
}

impl Known {
    /// The epoch in which a bucket is served, by whatever does.
    fn served(&self, bucket: Bucket) -> u64 {
        self.main.of(bucket).max(self.standby.of(bucket))
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
}

/// Nobody has read the rows in time.
struct NotRead;

impl Shared {
    /// Waits for a reading that is recent when it is there.
    async fn read_again(&self) -> Result<(), NotRead> {
        let mut readings = self.reading.subscribe();
        let recent = async {
            loop {
                self.reading_wanted.notify_one();
                // The sender is as old as this.
                if readings.changed().await.is_err() || readings.borrow_and_update().is_recent(Instant::now())
                {
                    return;
                }
            }
        };
        tokio::time::timeout(READING_WAIT_MAX, recent).await.map_err(|_| NotRead)
    }
}

#[cfg(test)]
mod tests;
