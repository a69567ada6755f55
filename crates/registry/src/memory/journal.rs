//! The journal of a bucket, and the backlog of all buckets.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};

use seatkeeper_core::{Bucket, Event};
use tokio::sync::Notify;

use crate::open_pool::Record;

/// The events of a bucket that the ledger has not acknowledged, in order.
pub(super) struct Journal {
    epoch: u64,
    acknowledged: u64,
    events: VecDeque<Event>,
}

impl Journal {
    /// Creates an empty journal of a bucket in `epoch`.
    pub(super) fn new(epoch: u64) -> Self {
        Self { epoch, acknowledged: 0, events: VecDeque::new() }
    }

    /// Returns the number of acknowledged events.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Returns the oldest events and their positions.
    pub(super) fn waiting(&self, max: usize) -> impl Iterator<Item = (u64, &Event)> {
        (self.acknowledged + 1..).zip(self.events.iter().take(max))
    }

    /// Deletes the events up to `position`. Returns the number of deleted events.
    pub(super) fn acknowledge(&mut self, position: u64) -> usize {
        let through = position.min(self.end()).saturating_sub(self.acknowledged);
        self.events.drain(..through as usize);
        self.acknowledged += through;
        through as usize
    }
}

impl Record for Journal {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn push(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Returns the total number of events, acknowledged or not.
    fn end(&self) -> u64 {
        self.acknowledged + self.events.len() as u64
    }
}

/// The set of buckets with waiting events, and the total of events. Changed under the bucket's lock only.
pub(super) struct Backlog {
    waiting: Box<[AtomicU64]>,
    depth: AtomicUsize,
    first: AtomicU16,
    buckets: u16,
    wakeup: Notify,
}

impl Backlog {
    pub(super) fn new(buckets: u16) -> Self {
        Self {
            waiting: (0..buckets.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            depth: AtomicUsize::new(0),
            first: AtomicU16::new(0),
            buckets,
            wakeup: Notify::new(),
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    pub(super) async fn wakeup(&self) {
        self.wakeup.notified().await;
    }

    pub(super) fn grew(&self, bucket: Bucket, events: u64) {
        if events == 0 {
            return;
        }
        let (word, bit) = self.place(bucket.number());
        self.depth.fetch_add(events as usize, Ordering::Relaxed);
        word.fetch_or(bit, Ordering::AcqRel);
        self.wakeup.notify_one();
    }

    pub(super) fn shrank(&self, bucket: Bucket, events: usize, emptied: bool) {
        let (word, bit) = self.place(bucket.number());
        self.depth.fetch_sub(events, Ordering::Relaxed);
        if emptied {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// Returns the buckets with events, starting from a different bucket at each call.
    pub(super) fn waiting(&self) -> impl Iterator<Item = Bucket> {
        let first = self.first.fetch_add(1, Ordering::Relaxed);
        (0..self.buckets)
            .map(move |step| first.wrapping_add(step) % self.buckets)
            .filter(|&number| {
                let (word, bit) = self.place(number);
                word.load(Ordering::Acquire) & bit != 0
            })
            .filter_map(Bucket::new)
    }

    fn place(&self, number: u16) -> (&AtomicU64, u64) {
        (&self.waiting[usize::from(number / 64)], 1 << (number % 64))
    }
}
