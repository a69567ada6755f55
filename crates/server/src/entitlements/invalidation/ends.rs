//! Ends of sessions, told to the other nodes by bucket. A listener on another node looks up its session after each
//! message about the session's bucket.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use seatkeeper_core::{Bucket, BucketSet, Change, Event, PoolKind};
use seatkeeper_engine::{Progress, Worker};
use tokio::sync::Notify;

use super::message::Message;
use super::{ENDINGS, ENTITLEMENTS, Others, RETRY_PAUSE_MAX, announce, notify};
use crate::error::Error;

/// Pause between two messages, in which further ends are collected. PostgreSQL serializes commits that carry a
/// notice.
const COLLECTED_FOR: Duration = Duration::from_millis(100);

/// Buckets with ends that this node has recorded and not yet announced to the other nodes.
pub(crate) struct EndedAbroad {
    /// The nodes share a Redis.
    has_redis: bool,
    unannounced: Mutex<Unannounced>,
    noted: Notify,
}

/// The buckets to announce, by transport.
#[derive(Default)]
struct Unannounced {
    by_redis: BucketSet,
    by_postgres: BucketSet,
}

impl Unannounced {
    fn len(&self) -> u32 {
        self.by_redis.len() + self.by_postgres.len()
    }
}

impl EndedAbroad {
    /// Creates the set. `has_redis`: the nodes share a Redis.
    pub(crate) fn new(has_redis: bool) -> Self {
        Self { has_redis, unannounced: Mutex::default(), noted: Notify::new() }
    }

    /// Adds the buckets of ends recorded from a journal in PostgreSQL, and wakes the [`EndTeller`]. Redis announces ends of
    /// capacities at a lower price than PostgreSQL. Ends of other kinds beside a Redis are ends in a fallback, and a node
    /// may then be cut off from Redis.
    pub(crate) fn note(&self, events: &[Event]) {
        let mut unannounced = self.unannounced.lock();
        let before = unannounced.len();
        for event in events.iter().filter(|event| matches!(event.change, Change::Ended { .. })) {
            let is_cheap = self.has_redis && event.pool.kind == PoolKind::Capacity;
            let buckets = if is_cheap { &mut unannounced.by_redis } else { &mut unannounced.by_postgres };
            buckets.insert(event.pool.bucket());
        }
        if unannounced.len() > before {
            self.noted.notify_one();
        }
    }

    /// Adds the bucket of a session after a release of a share, and wakes the [`EndTeller`]. A release of a share has no
    /// event in the journal, so other nodes hear of the release by the message alone.
    pub(crate) fn note_bucket(&self, bucket: Bucket) {
        let mut unannounced = self.unannounced.lock();
        if self.has_redis { &mut unannounced.by_redis } else { &mut unannounced.by_postgres }.insert(bucket);
        self.noted.notify_one();
    }

    fn take(&self) -> Unannounced {
        std::mem::take(&mut *self.unannounced.lock())
    }

    /// Puts buckets back that could not be announced.
    fn put_back(&self, untold: &Unannounced) {
        let mut unannounced = self.unannounced.lock();
        untold.by_redis.iter().for_each(|bucket| unannounced.by_redis.insert(bucket));
        untold.by_postgres.iter().for_each(|bucket| unannounced.by_postgres.insert(bucket));
    }
}

/// A worker that announces recorded ends to the other nodes, by bucket.
pub(crate) struct EndTeller {
    others: Others,
    ended: Arc<EndedAbroad>,
    /// Every node reached Redis when this worker last looked.
    was_redis_well: AtomicBool,
}

#[async_trait]
impl Worker for EndTeller {
    type Error = Error;

    fn name(&self) -> &'static str {
        "end_teller"
    }

    fn rest(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn retry_pause_max(&self) -> Duration {
        RETRY_PAUSE_MAX
    }

    async fn activate(&self) -> Result<Progress, Error> {
        self.announce_anything_after_loss().await?;
        let unannounced = self.ended.take();
        if unannounced.len() == 0 {
            return Ok(Progress::Idle);
        }
        if let Err(error) = self.announce(&unannounced).await {
            self.ended.put_back(&unannounced);
            return Err(error);
        }
        Ok(Progress::Defer(COLLECTED_FOR))
    }

    async fn woken(&self) {
        self.ended.noted.notified().await;
    }
}

impl EndTeller {
    /// Creates a worker that announces the ends in `ended`.
    pub(crate) fn new(others: Others, ended: Arc<EndedAbroad>) -> Self {
        Self { others, ended, was_redis_well: AtomicBool::new(true) }
    }

    /// Announces by PostgreSQL, once after a node is cut off from Redis, that anything may have changed. The node reports
    /// the loss some seconds late, and has missed the announcements of these seconds in Redis.
    async fn announce_anything_after_loss(&self) -> Result<(), Error> {
        let is_well = (self.others.is_redis_well)();
        let (Some(_), Some(notices)) = (&self.others.redis, &self.others.notices) else { return Ok(()) };
        if self.was_redis_well.load(Relaxed) && !is_well {
            notify(notices, &ENTITLEMENTS, &Message::Anything.to_text()).await?;
            notify(notices, &ENDINGS, &text_of(&Bucket::all().collect())).await?;
        }
        self.was_redis_well.store(is_well, Relaxed);
        Ok(())
    }

    async fn announce(&self, Unannounced { by_redis, by_postgres }: &Unannounced) -> Result<(), Error> {
        if !by_redis.is_empty() {
            announce(&self.others, &ENDINGS, &text_of(by_redis)).await?;
        }
        match &self.others.notices {
            Some(notices) if !by_postgres.is_empty() => {
                notify(notices, &ENDINGS, &text_of(by_postgres)).await
            }
            _ => Ok(()),
        }
    }
}

/// Returns the numbers of the buckets, separated by spaces.
fn text_of(buckets: &BucketSet) -> String {
    let numbers: Vec<_> = buckets.iter().map(|bucket| bucket.number().to_string()).collect();
    numbers.join(" ")
}

/// Returns the buckets named in a message, or every bucket if the text is invalid.
pub(super) fn buckets_of(text: &str) -> HashSet<Bucket> {
    let numbers: Option<HashSet<u16>> = text.split(' ').map(|number| number.parse().ok()).collect();
    match numbers {
        Some(numbers) => Bucket::all().filter(|bucket| numbers.contains(&bucket.number())).collect(),
        None => Bucket::all().collect(),
    }
}

#[cfg(test)]
mod tests;
