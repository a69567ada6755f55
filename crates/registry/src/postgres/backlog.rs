//! The journal's depth and the positions that requests await, as known to this node.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use seatkeeper_core::Bucket;
use tokio::sync::Notify;

use crate::contract::Receipt;

/// Maximum age of the depth by which an admission is refused. A younger depth may lack events of other nodes.
const FRESH_FOR: Duration = Duration::from_millis(250);

/// Interval between reads of the journal while a request on this node waits for another node's events. Nodes
/// poll, because `NOTIFY` makes all commits of PostgreSQL wait for one another.
const AWAITED_ASKED_EVERY: Duration = Duration::from_millis(100);

/// Interval between reads while no request waits: the node that wrote an event may be gone.
const OTHERS_ASKED_EVERY: Duration = Duration::from_secs(1);

/// The depth of the journal, and the positions awaited by requests on this node.
pub(super) struct Backlog {
    awaited: Box<[Mutex<Awaited>]>,
    /// Signed, because updates by own changes and a read of the total may cross.
    depth: AtomicI64,
    /// Time of the latest read, in milliseconds since `started`.
    read_at_millis: AtomicU64,
    started: Instant,
    wakeup: Notify,
}

/// The awaited position of one bucket, in one epoch.
#[derive(Clone, Copy, Default)]
struct Awaited {
    epoch: u64,
    /// The last position that an answer of this node rests on.
    told: u64,
    /// The last position known to be in the ledger.
    acknowledged: u64,
}

impl Awaited {
    /// Switches to a later epoch. Returns `None` for an earlier epoch.
    fn enter(&mut self, epoch: u64) -> Option<&mut Self> {
        if epoch > self.epoch {
            *self = Self { epoch, ..Self::default() };
        }
        (epoch == self.epoch).then_some(self)
    }
}

impl Backlog {
    pub(super) fn new() -> Self {
        Self {
            awaited: Bucket::all().map(|_| Mutex::default()).collect(),
            depth: AtomicI64::new(0),
            read_at_millis: AtomicU64::new(0),
            started: Instant::now(),
            wakeup: Notify::new(),
        }
    }

    pub(super) fn depth(&self) -> usize {
        usize::try_from(self.depth.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// Notes that an answer of this node rests on `receipt`, after a step that wrote `events` events.
    pub(super) fn told(&self, receipt: Receipt, events: usize) {
        let mut is_awaited = false;
        if let Some(awaited) = self.bucket(receipt.bucket).lock().enter(receipt.epoch) {
            awaited.told = awaited.told.max(receipt.position);
            is_awaited = awaited.told > awaited.acknowledged;
        }
        self.depth.fetch_add(events as i64, Ordering::Relaxed);
        if events > 0 || is_awaited {
            self.wakeup.notify_one();
        }
    }

    /// Notes that the ledger has events up to `receipt`.
    pub(super) fn acknowledged(&self, receipt: Receipt) {
        if let Some(awaited) = self.bucket(receipt.bucket).lock().enter(receipt.epoch) {
            awaited.acknowledged = awaited.acknowledged.max(receipt.position);
        }
    }

    /// Returns the buckets awaited by requests on this node.
    pub(super) fn awaited(&self) -> impl Iterator<Item = Bucket> {
        Bucket::all().filter(|&bucket| {
            let awaited = *self.bucket(bucket).lock();
            awaited.told > awaited.acknowledged
        })
    }

    /// Returns whether the journal was empty at most [`OTHERS_ASKED_EVERY`] ago, and no request on this node
    /// waits for an event.
    pub(super) fn is_surely_empty(&self) -> bool {
        let read_at = self.read_at_millis.load(Ordering::Relaxed);
        let age = self.millis().saturating_sub(read_at);
        let is_fresh = read_at > 0 && age < OTHERS_ASKED_EVERY.as_millis() as u64;
        is_fresh && self.depth() == 0 && !self.is_awaited()
    }

    fn is_awaited(&self) -> bool {
        self.awaited().next().is_some()
    }

    fn bucket(&self, bucket: Bucket) -> &Mutex<Awaited> {
        &self.awaited[usize::from(bucket.number())]
    }

    /// Notes that this node deleted acknowledged events.
    pub(super) fn shrank(&self, events: i64) {
        self.depth.fetch_sub(events, Ordering::Relaxed);
    }

    /// Sets the depth to the result of a read.
    pub(super) fn is(&self, depth: i64) {
        self.depth.store(depth, Ordering::Relaxed);
        self.read_at_millis.store(self.millis(), Ordering::Relaxed);
    }

    /// Returns whether the caller should read the depth: true for one caller at a time (single flight).
    pub(super) fn wants_reading(&self) -> bool {
        let (read_at, now) = (self.read_at_millis.load(Ordering::Relaxed), self.millis());
        let stale = read_at == 0 || now.saturating_sub(read_at) > FRESH_FOR.as_millis() as u64;
        let exchange = |now| {
            self.read_at_millis.compare_exchange(read_at, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        };
        stale && exchange(now)
    }

    /// Waits until the journal is worth a read. Wake-ups may be spurious.
    pub(super) async fn wakeup(&self) {
        loop {
            let interval = if self.is_awaited() { AWAITED_ASKED_EVERY } else { OTHERS_ASKED_EVERY };
            // A wait that is cancelled by the timeout loses no notification.
            let is_notified = tokio::time::timeout(interval, self.wakeup.notified()).await.is_ok();
            if is_notified || !self.is_surely_empty() {
                return;
            }
        }
    }

    /// Returns milliseconds since `started`, never 0.
    fn millis(&self) -> u64 {
        self.started.elapsed().as_millis() as u64 + 1
    }
}
