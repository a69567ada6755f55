//! The journal: a stream for each bucket.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use parking_lot::Mutex;
use redis::Value;
use seatkeeper_core::Bucket;
use tokio::time::Instant;

use super::RedisRegistry;
use super::codec::{Garbled, event_of};
use super::head::Stage;
use super::scripts::SCRIPTS;
use crate::contract::{Journal, JournalEntry, JournalRead, Receipt};
use crate::{Epochs, Error, Share};

/// How old the knowledge of what waits may be when an admission is refused for it.
const FULL_SEEN: Duration = Duration::from_millis(50);

/// How long Redis may keep events that are on record: one call then acknowledges what many commits recorded of a bucket.
/// Whoever sees them there waits longer before he brings them to the ledger once more.
const ACKNOWLEDGED_KNOWN: Duration = Duration::from_millis(250);

/// What part of the journal's room is worth a call to Redis at once.
const MAKES_ROOM_PART: usize = 8;

#[async_trait]
impl Journal for RedisRegistry {
    async fn journal_read(&self, share: Share, max: usize) -> Result<JournalRead, Error> {
        self.acknowledge_recorded().await?;
        self.look_at_journals(self.settings.journal_poll).await?;
        let linger = self.settings.journal_linger;
        let read = || self.served().filter(|&bucket| share.has(bucket));
        let waiting: Vec<_> = read().filter(|&bucket| self.backlog.is_due(bucket, linger)).collect();
        // As many of each, so that a bucket with a hundred thousand ends holds up no other's admission.
        let each = max.div_ceil(waiting.len().max(1));
        let mut entries = Vec::new();
        for events in join_all(waiting.into_iter().map(|bucket| self.read_journal(bucket, each))).await {
            entries.extend(events?);
        }
        let acknowledged = read().map(|bucket| self.backlog.done(bucket));
        Ok(JournalRead {
            entries,
            acknowledged: acknowledged.filter(|receipt| receipt.position > 0).collect(),
        })
    }

    /// Notes what is on record. Redis is told in time, and at once where that makes room for many.
    async fn journal_acknowledge(&self, through: Receipt) -> Result<(), Error> {
        self.backlog.record(through);
        match self.backlog.untold(through.bucket, self.settings.journal_events_max / MAKES_ROOM_PART) {
            Some(through) => self.acknowledge(through).await,
            None => Ok(()),
        }
    }

    fn journal_depth(&self) -> usize {
        self.backlog.depth()
    }

    /// Returns once this node has written an event, or another node may have.
    async fn journal_stirred(&self, share: Share) {
        // The caller reads in either case.
        let _ = tokio::time::timeout(self.settings.journal_poll, self.backlog.stirred(share)).await;
    }

    async fn journal_end(&self, bucket: Bucket) -> Result<Receipt, Error> {
        let reply = self.call(self.on_bucket(&SCRIPTS.journal_end, bucket)).await?;
        Ok(self.expect(reply.receipt))
    }
}

impl RedisRegistry {
    /// An error if more events wait than may, over all buckets.
    pub(super) async fn room_in_journals(&self) -> Result<(), Error> {
        if self.backlog.depth() >= self.settings.journal_events_max {
            self.look_at_journals(FULL_SEEN).await?;
        }
        let depth = self.backlog.depth();
        if depth < self.settings.journal_events_max { Ok(()) } else { Err(Error::JournalFull { depth }) }
    }

    /// The oldest events of a bucket that is served, but for what is known to be on record; none of another.
    async fn read_journal(&self, bucket: Bucket, max: usize) -> Result<Vec<JournalEntry>, Error> {
        let kept = self.backlog.take_kept(bucket, max);
        if kept.first().is_some_and(|entry| entry.receipt.epoch == self.epochs.of(bucket)) {
            return Ok(kept);
        }
        let done = self.backlog.done(bucket);
        let done = if done.epoch == self.epochs.of(bucket) { done.position } else { 0 };
        let read = self.on_bucket(&SCRIPTS.journal_read, bucket).arg(done).arg(count(max));
        match self.call(read).await {
            Ok(mut reply) => {
                let mut events = Vec::new();
                for entry in reply.values.array()? {
                    events.extend(events_of(bucket, entry)?);
                }
                events.retain(|event| event.receipt.position > done.max(reply.acknowledged));
                Ok(events)
            }
            Err(Error::NotServing { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// The oldest events of a bucket behind `after`, whether it is served or not: at most `max`, and what stands in one entry
    /// with the last of them. So the place of the last that is returned is never one within an entry, and `after` is not
    /// either.
    pub(super) async fn read_journal_after(
        &self,
        bucket: Bucket,
        after: Option<Receipt>,
        max: usize,
    ) -> Result<Vec<JournalEntry>, Error> {
        let from =
            after.map_or_else(|| "-".to_owned(), |after| format!("({}-{}", after.epoch, after.position));
        let mut range = redis::cmd("XRANGE");
        range.arg(&self.keys.of(bucket).journal).arg(from).arg("+").arg("COUNT").arg(count(max));
        let entries: Vec<Value> = self.query(bucket, &range).await?;
        let mut events = Vec::new();
        for entry in entries {
            if events.len() >= max {
                break;
            }
            events.extend(events_of(bucket, entry)?);
        }
        Ok(events)
    }

    /// Tells Redis what is on record, unless that was done so short a time ago: one call a bucket for many commits.
    async fn acknowledge_recorded(&self) -> Result<(), Error> {
        if !is_time_again(&self.acknowledged, ACKNOWLEDGED_KNOWN) {
            return Ok(());
        }
        let untold = self.served().filter_map(|bucket| self.backlog.untold(bucket, 0));
        join_all(untold.map(|through| self.acknowledge(through))).await.into_iter().collect()
    }

    async fn acknowledge(&self, through: Receipt) -> Result<(), Error> {
        let Receipt { bucket, epoch, position } = through;
        let call = self.on_bucket(&SCRIPTS.acknowledge, bucket).in_epoch(Stage::Serving, epoch);
        match self.call(call.arg(position)).await {
            // What was of an epoch that is over is gone, or about to be.
            Ok(_) | Err(Error::NotServing { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Notes that an answer waits for the journal up to here, or that this node's own work has got here.
    pub(super) fn expect(&self, receipt: Receipt) -> Receipt {
        self.backlog.expect(receipt);
        receipt
    }

    /// Does the same for a call that changed a pool, and keeps the events in its reply for the journal's reader.
    pub(super) fn expect_with(&self, receipt: Receipt, events: Vec<Value>) -> Result<Receipt, Error> {
        let event = |event| {
            let Value::BulkString(bytes) = event else { return Err(Garbled("an event of a call")) };
            event_of(&bytes, receipt.epoch)
        };
        let events = events.into_iter().map(event).collect::<Result<_, _>>()?;
        self.backlog.keep(receipt, events);
        Ok(self.expect(receipt))
    }

    /// Learns how much waits in every bucket that is served, from a survey that is at most so old.
    async fn look_at_journals(&self, known_for: Duration) -> Result<(), Error> {
        for (bucket, standing) in self.served_heads(known_for).await? {
            if let Some(head) = standing.serving_in(self.epochs.of(bucket)) {
                let end = Receipt { bucket, epoch: head.epoch, position: head.last };
                self.backlog.note(end, head.acknowledged);
            }
        }
        Ok(())
    }

    fn served(&self) -> impl Iterator<Item = Bucket> {
        Bucket::all().filter(|&bucket| self.epochs.of(bucket) != Epochs::NONE)
    }
}

/// Whether something that was last done `then` is to be done again; it is, now.
fn is_time_again(then: &Mutex<Option<Instant>>, interval: Duration) -> bool {
    let (now, mut then) = (Instant::now(), then.lock());
    let is_time = then.is_none_or(|then| now.duration_since(then) >= interval);
    if is_time {
        *then = Some(now);
    }
    is_time
}

/// As many as Redis can count to.
fn count(max: usize) -> usize {
    max.min(i64::MAX as usize)
}

/// The events in an entry of a stream: its id, which is the place of its last event, and a field for each.
fn events_of(bucket: Bucket, entry: Value) -> Result<Vec<JournalEntry>, Garbled> {
    let garbled = || Garbled("an entry of a journal");
    let Value::Array(entry) = entry else { return Err(garbled()) };
    let [Value::BulkString(id), Value::Array(fields)] = &entry[..] else { return Err(garbled()) };
    let id = std::str::from_utf8(id).map_err(|_| garbled())?;
    let (epoch, last) = id.split_once('-').ok_or_else(garbled)?;
    let epoch = epoch.parse().map_err(|_| garbled())?;
    let last: u64 = last.parse().map_err(|_| garbled())?;
    let (events, _) = fields.as_chunks();
    let before = last.checked_sub(events.len() as u64).ok_or_else(garbled)?;
    let event = |(position, [_, event]): (u64, &[Value; 2])| {
        let Value::BulkString(event) = event else { return Err(garbled()) };
        Ok(JournalEntry { receipt: Receipt { bucket, epoch, position }, event: event_of(event, epoch)? })
    };
    (before + 1..).zip(events).map(event).collect()
}
