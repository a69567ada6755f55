//! Ends of sessions, told to the other nodes by bucket. A listener on another node looks up its session after each
//! message about the session's bucket.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use seatkeeper_core::{Bucket, BucketSet, Change, Event, PoolKind};
use seatkeeper_engine::{Progress, Worker};
use tokio::sync::Notify;

use super::{ENDINGS, Others, publish};
use crate::error::Error;

/// Pause between two messages, in which further ends are collected. PostgreSQL serializes commits that carry a
/// notice.
const COLLECTED_FOR: Duration = Duration::from_millis(100);

/// Pause after a message that Redis did not take.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Buckets with ends that this node has recorded and not yet announced to the other nodes.
pub(crate) struct EndedAbroad {
    /// The kinds of pools whose ends other nodes do not hear of otherwise.
    kinds: &'static [PoolKind],
    buckets: Mutex<BucketSet>,
    noted: Notify,
}

impl EndedAbroad {
    /// Creates the set. Nodes that share a Redis read the ends of its pools from the journal there, but capacities are
    /// always in PostgreSQL.
    pub(crate) fn new(others: &Others) -> Self {
        let kinds: &[_] = match others {
            Others::ByRedis(_) => &[PoolKind::Capacity],
            Others::ByPostgres(_) => &PoolKind::ALL,
        };
        Self { kinds, buckets: Mutex::default(), noted: Notify::new() }
    }

    /// Adds the buckets of recorded ends, and wakes the [`EndTeller`].
    pub(crate) fn note(&self, events: &[Event]) {
        let ends = events.iter().filter(|event| {
            self.kinds.contains(&event.pool.kind) && matches!(event.change, Change::Ended { .. })
        });
        let mut buckets = self.buckets.lock();
        let before = buckets.len();
        ends.for_each(|event| buckets.insert(event.pool.bucket()));
        if buckets.len() > before {
            self.noted.notify_one();
        }
    }

    /// Adds the bucket of a session after a release of a share, and wakes the [`EndTeller`]. A release of a share has no
    /// event in the journal, so other nodes hear of the release by the message alone.
    pub(crate) fn note_bucket(&self, bucket: Bucket) {
        self.buckets.lock().insert(bucket);
        self.noted.notify_one();
    }
}

/// A worker that announces recorded ends to the other nodes, by bucket.
pub(crate) struct EndTeller {
    pub(crate) others: Others,
    pub(crate) ended: Arc<EndedAbroad>,
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

    async fn activate(&self) -> Result<Progress, Error> {
        let buckets = std::mem::take(&mut *self.ended.buckets.lock());
        if buckets.is_empty() {
            return Ok(Progress::Idle);
        }
        if let Err(error) = publish(&self.others, &ENDINGS, &text_of(&buckets)).await {
            let mut untold = self.ended.buckets.lock();
            buckets.iter().for_each(|bucket| untold.insert(bucket));
            return match self.others {
                Others::ByPostgres(_) => Err(error),
                Others::ByRedis(_) => {
                    let causes = error.with_causes();
                    tracing::debug!(%causes, "publishing ends of sessions failed: streams of other nodes hear of them later");
                    Ok(Progress::Defer(PAUSE_AFTER_FAILURE))
                }
            };
        }
        Ok(Progress::Defer(COLLECTED_FOR))
    }

    async fn woken(&self) {
        self.ended.noted.notified().await;
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
