//! Messages between nodes over PostgreSQL `NOTIFY`, for deployments without Redis.
//!
//! A node receives changes of entitlements and ends of sessions on a single connection. As with Redis,
//! messages sent while a node is disconnected are lost: after a reconnect the node clears its caches and
//! looks up every awaited end.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use seatkeeper_core::{Bucket, BucketSet, Change, Event};
use seatkeeper_ledger::notices::{Notice, NoticeListener, Notices};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::message::Message;
use super::{ANSWER_TIMEOUT, STILL_THERE};
use crate::entitlements::{Changed, Entitlements};
use crate::error::Error;
use seatkeeper_engine::Endings;
use seatkeeper_engine::{Progress, Worker};

pub(super) const ENTITLEMENTS: &str = "seatkeeper_entitlements";
const ENDINGS: &str = "seatkeeper_endings";

/// Pause between two notices, in which further ends are collected. PostgreSQL serializes commits that carry a
/// notice.
const COLLECTED_FOR: Duration = Duration::from_millis(100);

/// Buckets with ends that this node has recorded and not yet announced to the other nodes.
#[derive(Default)]
pub(crate) struct EndedAbroad {
    buckets: Mutex<BucketSet>,
    noted: Notify,
}

impl EndedAbroad {
    /// Adds the buckets of recorded ends, and wakes the [`EndTeller`].
    pub(crate) fn note(&self, events: &[Event]) {
        let ends = events.iter().filter(|event| matches!(event.change, Change::Ended { .. }));
        let mut buckets = self.buckets.lock();
        let before = buckets.len();
        ends.for_each(|event| buckets.insert(event.pool.bucket()));
        if buckets.len() > before {
            self.noted.notify_one();
        }
    }
}

/// A worker that announces recorded ends to the other nodes, by bucket.
pub(crate) struct EndTeller {
    pub(crate) notices: Notices,
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
        if let Err(error) = self.notices.tell(ENDINGS, &text_of(&buckets)).await {
            let mut untold = self.ended.buckets.lock();
            buckets.iter().for_each(|bucket| untold.insert(bucket));
            return Err(Error::Ledger(error));
        }
        Ok(Progress::Defer(COLLECTED_FOR))
    }

    async fn woken(&self) {
        self.ended.noted.notified().await;
    }
}

/// A worker that applies the notices of other nodes: changes of entitlements, and buckets with ended
/// sessions.
pub(crate) struct NoticeReader {
    pub(crate) notices: Notices,
    pub(crate) entitlements: Arc<Entitlements>,
    pub(crate) endings: Arc<Endings>,
    pub(crate) stopping: CancellationToken,
}

impl NoticeReader {
    /// Applies notices until the connection is lost, and returns an error: the worker retries with a backoff.
    async fn read(&self) -> Result<(), Error> {
        let listening = timeout(ANSWER_TIMEOUT, self.notices.listen(&[ENTITLEMENTS, ENDINGS])).await;
        let mut listening: NoticeListener = listening.map_err(|_| Error::TimedOut)?.map_err(Error::Ledger)?;
        // Notices sent before `LISTEN` are lost. Every cached entry may be stale, and any awaited session may
        // have ended.
        self.entitlements.forget(Changed::Anything);
        self.endings.tell_of_buckets(&Bucket::all().collect());
        loop {
            match timeout(STILL_THERE, listening.next()).await {
                Ok(Ok(Some(notice))) => self.hear(&notice),
                Ok(Ok(None)) => return Err(Error::NoticesLost),
                Ok(Err(error)) => return Err(Error::Ledger(error)),
                Err(_) => {
                    let pinged = timeout(ANSWER_TIMEOUT, listening.ping(ENDINGS)).await;
                    pinged.map_err(|_| Error::TimedOut)?.map_err(Error::Ledger)?;
                }
            }
        }
    }

    fn hear(&self, notice: &Notice) {
        match &*notice.channel {
            ENTITLEMENTS => self.entitlements.forget(Message::read(notice.payload.as_bytes())),
            _ => self.endings.tell_of_buckets(&buckets_of(&notice.payload)),
        }
    }
}

#[async_trait]
impl Worker for NoticeReader {
    type Error = Error;

    fn name(&self) -> &'static str {
        "notices"
    }

    fn rest(&self) -> Duration {
        Duration::ZERO
    }

    async fn activate(&self) -> Result<Progress, Error> {
        tokio::select! {
            () = self.stopping.cancelled() => Ok(Progress::Idle),
            lost = self.read() => lost.map(|()| Progress::More),
        }
    }
}

/// Returns the numbers of the buckets, separated by spaces.
fn text_of(buckets: &BucketSet) -> String {
    let numbers: Vec<_> = buckets.iter().map(|bucket| bucket.number().to_string()).collect();
    numbers.join(" ")
}

/// Returns the buckets named in a notice, or every bucket if the text is invalid.
fn buckets_of(text: &str) -> HashSet<Bucket> {
    let numbers: Option<HashSet<u16>> = text.split(' ').map(|number| number.parse().ok()).collect();
    match numbers {
        Some(numbers) => Bucket::all().filter(|bucket| numbers.contains(&bucket.number())).collect(),
        None => Bucket::all().collect(),
    }
}

#[cfg(test)]
mod tests;
