//! The journal of one bucket, and the sum of all of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};

use seatkeeper_core::{Bucket, Event};

use crate::open_pool::Record;
use crate::share::{Share, Stirred};

/// The events of one bucket that the ledger has not acknowledged, in order.
#[derive(Default)]
pub(super) struct Journal {
    acknowledged: u64,
    events: VecDeque<Event>,
}

impl Journal {
    /// How many of them are acknowledged.
    pub(super) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    pub(super) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The oldest events and their positions.
    pub(super) fn waiting(&self, max: usize) -> impl Iterator<Item = (u64, &Event)> {
        (self.acknowledged + 1..).zip(self.events.iter().take(max))
    }

    /// Forgets the events up to `position`, and says how many those were.
    pub(super) fn acknowledge(&mut self, position: u64) -> usize {
        let through = position.min(self.end()).saturating_sub(self.acknowledged);
        self.events.drain(..through as usize);
        self.acknowledged += through;
        through as usize
    }
}

impl Record for Journal {
    fn push(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// How many events it ever held.
    fn end(&self) -> u64 {
        self.acknowledged + self.events.len() as u64
    }
}

/// Which buckets have events waiting, and how many in all. Changed only under the bucket's lock.
pub(super) struct Backlog {
    waiting: Box<[AtomicU64]>,
    depth: AtomicUsize,
    first: AtomicU16,
    buckets: u16,
    stirred: Stirred,
}

impl Backlog {
    pub(super) fn new(buckets: u16) -> Self {
        Self {
            waiting: (0..buckets.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            depth: AtomicUsize::new(0),
            first: AtomicU16::new(0),
            buckets,
            stirred: Stirred::default(),
        }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth.load(Ordering::Relaxed)
    }

    pub(super) async fn stirred(&self, share: Share) {
        self.stirred.notified(share).await;
    }

    pub(super) fn grew(&self, bucket: Bucket, events: u64) {
        if events == 0 {
            return;
        }
        let (word, bit) = self.place(bucket.number());
        self.depth.fetch_add(events as usize, Ordering::Relaxed);
        word.fetch_or(bit, Ordering::AcqRel);
        self.stirred.notify(bucket);
    }

    pub(super) fn shrank(&self, bucket: Bucket, events: usize, emptied: bool) {
        let (word, bit) = self.place(bucket.number());
        self.depth.fetch_sub(events, Ordering::Relaxed);
        if emptied {
            word.fetch_and(!bit, Ordering::AcqRel);
        }
    }

    /// The buckets with events, from another one on at each call.
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
