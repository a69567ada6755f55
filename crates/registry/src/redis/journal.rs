//! The journal of each bucket, a Redis stream. An event stays in the stream until the ledger has the event.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use parking_lot::Mutex;
use redis::Value;
use seatkeeper_core::{Bucket, BucketSet};
use tokio::time::Instant;

use super::RedisRegistry;
use super::codec::{Garbled, event_of};
use super::entries::decode;
use super::head::Stage;
use super::reply::Reply;
use super::scripts::SCRIPTS;
use super::survey::ServedHeads;
use crate::contract::{Journal, JournalEntry, JournalRead, Receipt, UnreadableEntry};
use crate::{Epochs, Error};

/// Maximum age of the survey by which a full journal refuses an admission.
const FULL_SEEN: Duration = Duration::from_millis(50);

/// The time for which Redis may keep recorded events, so that one call acknowledges many commits of a bucket. Another
/// node waits longer before recording the events of this node.
const ACKNOWLEDGED_KNOWN: Duration = Duration::from_millis(250);

/// An acknowledgement that frees this fraction of the journal is sent at once.
const MAKES_ROOM_PART: usize = 8;

#[async_trait]
impl Journal for RedisRegistry {
    async fn journal_read(&self, max: usize) -> Result<JournalRead, Error> {
        // A survey fails if a server refuses writes, as with full memory. The journals are read
        // nevertheless: a journal that fills the memory would never shrink.
        let survey = self.look_at_journals(self.settings.journal_poll).await;
        let (unreached, is_any_reached) = (&survey.unreached, !survey.heads.is_empty());
        let linger = self.settings.journal_linger;
        self.unreadable.clear_passed(|end| self.backlog.has_passed(end));
        let is_read =
            |&bucket: &Bucket| self.backlog.is_due(bucket, linger) && !self.unreadable.is_resting(bucket);
        let waiting: Vec<_> = self.served().filter(is_read).collect();
        // An equal share of each bucket, so that a bucket with a hundred thousand ends delays no admission of
        // another bucket.
        let each = max.div_ceil(waiting.len().max(1));
        let read = async |bucket| {
            (bucket, self.in_time(unreached.contains(bucket), self.read_journal(bucket, each)).await)
        };
        let reads = join_all(waiting.into_iter().map(read));
        let (reads, ()) = tokio::join!(reads, self.acknowledge_recorded(unreached));
        let (mut entries, mut failure) = (Vec::new(), None);
        for (bucket, events) in reads {
            match events {
                Ok(events) => entries.extend(events),
                // Otherwise the backoff of the drain would hold up the events of other servers.
                Err(error) if is_any_reached && unreached.contains(bucket) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::debug!(
                        error,
                        bucket = bucket.number(),
                        "a journal on a failed server was not read"
                    );
                }
                Err(error) => failure = Some(error),
            }
        }
        // The events of reachable servers do not wait for the others.
        if let Some(error) = failure.filter(|_| entries.is_empty()) {
            return Err(error);
        }
        let acknowledged = self.served().map(|bucket| self.backlog.done(bucket));
        Ok(JournalRead {
            entries,
            acknowledged: acknowledged.filter(|receipt| receipt.position > 0).collect(),
        })
    }

    /// Notes that the ledger has events up to `through`. Redis is told in the next round, or at once if many
    /// events are freed.
    async fn journal_acknowledge(&self, through: Receipt) -> Result<(), Error> {
        self.backlog.record(through);
        match self.backlog.untold(through.bucket, self.settings.journal_events_max / MAKES_ROOM_PART) {
            Some(through) => self.in_time(false, self.acknowledge(through)).await,
            None => Ok(()),
        }
    }

    fn journal_depth(&self) -> usize {
        self.backlog.depth()
    }

    /// Waits until this node wrote an event, or until another node may have written an event.
    async fn journal_woken(&self) {
        // After a timeout the caller reads as well.
        let _ = tokio::time::timeout(self.settings.journal_poll, self.backlog.wakeup()).await;
    }

    async fn journal_end(&self, bucket: Bucket) -> Result<Receipt, Error> {
        let reply = self.call(self.on_bucket(&SCRIPTS.journal_end, bucket)).await?;
        Ok(self.expect(reply.receipt))
    }

    fn unreadable_entries(&self) -> Vec<UnreadableEntry> {
        self.unreadable.current()
    }
}

impl RedisRegistry {
    /// Returns `Err(JournalFull)` if too many events wait, summed over all buckets. Returns `Err(UnreadableEntry)` for a
    /// bucket that is held up.
    pub(super) async fn room_in_journal(&self, bucket: Bucket) -> Result<(), Error> {
        self.unreadable.check(bucket)?;
        if self.backlog.depth() >= self.settings.journal_events_max {
            self.look_at_journals(FULL_SEEN).await.check()?;
        }
        let depth = self.backlog.depth();
        if depth < self.settings.journal_events_max { Ok(()) } else { Err(Error::JournalFull { depth }) }
    }

    /// Returns the oldest unrecorded events of a served bucket: from the replies of this node if they have all
    /// events, otherwise from Redis. Returns an empty list for a bucket that is not served. The events end before the
    /// first missing or undecodable entry.
    async fn read_journal(&self, bucket: Bucket, max: usize) -> Result<Vec<JournalEntry>, Error> {
        if let Some(kept) = self.backlog.kept(bucket, self.epochs.get(bucket)) {
            let entry = |(receipt, event): (Receipt, Vec<u8>)| {
                Ok(JournalEntry { receipt, event: event_of(&event, receipt.epoch)? })
            };
            // A read of the journal finds the id of the undecodable entry.
            if let Ok(events) = kept.into_iter().take(max).map(entry).collect::<Result<Vec<_>, Garbled>>() {
                if events.len() < max {
                    self.unreadable.clear(bucket);
                }
                return Ok(events);
            }
        }
        let done = self.backlog.done(bucket);
        let done = if done.epoch == self.epochs.get(bucket) { done.position } else { 0 };
        let read = self.on_bucket(&SCRIPTS.journal_read, bucket).arg(done).arg(count(max));
        match self.call(read).await {
            Ok(mut reply) => {
                let (from, end) = (done.max(reply.acknowledged), reply.receipt);
                let read = decode(bucket, &reply.values.array()?, usize::MAX).continue_from(from, end);
                let is_whole = read.events.len() < max;
                Ok(self.unreadable.after_read(bucket, &self.keys.bucket(bucket).journal, read, is_whole))
            }
            Err(Error::NotServing { .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Reads the oldest events of a bucket after `after`, served or not: at most `max`, plus the rest of the
    /// last stream entry. So the last position returned, and hence `after`, is always the end of an entry. Returns
    /// [`Error::UnreadableEntry`] if the first of these entries cannot be decoded.
    pub(super) async fn read_journal_after(
        &self,
        bucket: Bucket,
        after: Option<Receipt>,
        max: usize,
    ) -> Result<Vec<JournalEntry>, Error> {
        let from =
            after.map_or_else(|| "-".to_owned(), |after| format!("({}-{}", after.epoch, after.position));
        let mut range = redis::cmd("XRANGE");
        range.arg(&self.keys.bucket(bucket).journal).arg(from).arg("+").arg("COUNT").arg(count(max));
        let entries: Vec<Value> = self.query(bucket, &range).await?;
        let read = decode(bucket, &entries, max);
        self.unreadable.after_rebuild_read(bucket, &self.keys.bucket(bucket).journal, read)
    }

    /// Acknowledges recorded events to Redis, at most once per [`ACKNOWLEDGED_KNOWN`]: one call per bucket
    /// for many commits. An acknowledgement that fails is repeated in a later round.
    async fn acknowledge_recorded(&self, unreached: &BucketSet) {
        if !is_time_again(&self.acknowledged, ACKNOWLEDGED_KNOWN) {
            return;
        }
        let untold = self.served().filter_map(|bucket| self.backlog.untold(bucket, 0));
        let told =
            untold.map(|through| self.in_time(unreached.contains(through.bucket), self.acknowledge(through)));
        for error in join_all(told).await.into_iter().filter_map(Result::err) {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(error, "recorded events of a bucket were not acknowledged to Redis");
        }
    }

    async fn acknowledge(&self, through: Receipt) -> Result<(), Error> {
        let Receipt { bucket, epoch, position } = through;
        let call = self.on_bucket(&SCRIPTS.acknowledge, bucket).in_epoch(Stage::Serving, epoch);
        match self.call(call.arg(position)).await {
            // Events of an old epoch are gone, or about to be cleared.
            Ok(_) | Err(Error::NotServing { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Asks the drain for a prompt record up to `receipt`, because an answer waits or this node wrote the
    /// events.
    pub(super) fn expect(&self, receipt: Receipt) -> Receipt {
        self.backlog.expect(receipt);
        receipt
    }

    /// Like [`Self::expect`] for the end of a reply. Keeps the events of the reply for the drain.
    pub(super) fn expect_events(&self, reply: &mut Reply) -> Receipt {
        self.backlog.keep(reply.receipt, reply.values.take_events());
        self.expect(reply.receipt)
    }

    /// Updates the backlog of every served bucket on a reachable server, from a survey at most `known_for` old.
    async fn look_at_journals(&self, known_for: Duration) -> ServedHeads {
        let served = self.served_heads(known_for).await;
        // The events of a bucket that has left Redis are replayed from there, and wait for no drain.
        Bucket::all()
            .filter(|&bucket| self.epochs.get(bucket) == Epochs::NONE)
            .for_each(|bucket| self.backlog.forget(bucket));
        for (bucket, standing) in &served.heads {
            if let Some(head) = standing.serving_in(self.epochs.get(*bucket)) {
                let end = Receipt { bucket: *bucket, epoch: head.epoch, position: head.last };
                self.backlog.note(end, head.acknowledged);
            }
        }
        served
    }

    fn served(&self) -> impl Iterator<Item = Bucket> {
        Bucket::all().filter(|&bucket| self.epochs.get(bucket) != Epochs::NONE)
    }
}

/// Returns whether `interval` has passed since `then`. If so, restarts the interval.
fn is_time_again(then: &Mutex<Option<Instant>>, interval: Duration) -> bool {
    let (now, mut then) = (Instant::now(), then.lock());
    let is_time = then.is_none_or(|then| now.duration_since(then) >= interval);
    if is_time {
        *then = Some(now);
    }
    is_time
}

/// Bounds a count by Redis's largest integer.
fn count(max: usize) -> usize {
    max.min(i64::MAX as usize)
}
