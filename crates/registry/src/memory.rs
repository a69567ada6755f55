//! Registry of an embedded server: live sessions in the process's memory.
//!
//! Pools are spread over buckets, each behind its own lock. A lock is held for one decision and never across
//! an await. A bucket includes its journal, so that a seat and its record change together. After a restart,
//! pools are restored from the ledger one by one, by [`open`](crate::Admission::open).

mod bucket;
mod clocked;
mod due_queue;
mod journal;
mod session_index;

use async_trait::async_trait;
use parking_lot::{Mutex, MutexGuard};
use seatkeeper_core::{
    Authority, BUCKETS, Bucket, EndReason, LatestHeartbeat, Origin, PoolId, Region, RegistryTime, Session,
    SessionId, Terms,
};

use crate::contract::{
    Admission, Claimed, ClosedAt, Ended, EndedAll, Expiry, Heartbeat, Journal, JournalRead, Live, PoolView,
    Pools, Receipt, Request, Sessions, Swept,
};
use crate::open_pool::{Record as _, is_recent};
use crate::{Error, TimeSource};
use bucket::BucketState;
use clocked::Clocked;
use journal::Backlog;

/// A registry of live sessions in memory.
pub struct MemoryRegistry<C> {
    buckets: Box<[Mutex<BucketState>]>,
    backlog: Backlog,
    clock: Clocked<C>,
    region: Region,
    journal_events_max: usize,
}

impl<C: TimeSource> MemoryRegistry<C> {
    /// Creates an empty registry. Events carry `epoch`. No session is admitted while `journal_events_max`
    /// events wait in the journal.
    pub fn new(epoch: u64, region: Region, journal_events_max: usize, clock: C) -> Self {
        let bucket = |number| Mutex::new(BucketState::new(number, epoch));
        Self {
            buckets: Bucket::all().map(bucket).collect(),
            backlog: Backlog::new(BUCKETS),
            clock: Clocked::new(clock),
            region,
            journal_events_max,
        }
    }

    /// Runs one atomic step on a bucket, at the registry's time, and wakes the journal's reader.
    fn step<T>(&self, bucket: Bucket, act: impl FnOnce(&mut BucketState, RegistryTime) -> T) -> T {
        let mut state = self.lock(bucket);
        let now = state.not_before(self.clock.read());
        state.resume(self.clock.resumed());
        let before = state.journal().end();
        let done = act(&mut state, now);
        self.backlog.grew(bucket, state.journal().end() - before);
        done
    }

    fn lock(&self, bucket: Bucket) -> MutexGuard<'_, BucketState> {
        self.buckets[usize::from(bucket.number())].lock()
    }

    fn room_in_journal(&self) -> Result<(), Error> {
        let depth = self.backlog.depth();
        if depth < self.journal_events_max { Ok(()) } else { Err(Error::JournalFull { depth }) }
    }
}

#[async_trait]
impl<C: TimeSource> Admission for MemoryRegistry<C> {
    async fn open(
        &self,
        pool: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        live: Vec<Session>,
    ) -> Result<(), Error> {
        self.step(pool.bucket(), |state, now| state.open(pool, seq, terms, live, now));
        Ok(())
    }

    async fn closed_at(&self, pool: &PoolId) -> Result<Option<ClosedAt>, Error> {
        let closed_at = |now| ClosedAt { time: now, epoch: 0 };
        Ok(self.step(pool.bucket(), |state, now| (!state.is_open(pool)).then(|| closed_at(now))))
    }

    async fn open_if_recent(
        &self,
        closed_at: ClosedAt,
        pool: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        live: Vec<Session>,
    ) -> Result<(), Error> {
        self.step(pool.bucket(), |state, now| {
            if is_recent(closed_at.time, now) {
                state.open(pool, seq, terms, live, now);
            }
        });
        Ok(())
    }

    async fn claim(&self, request: Request<'_>) -> Result<Claimed, Error> {
        let bucket = request.pool.bucket();
        loop {
            self.room_in_journal()?;
            let claimed = self.step(bucket, |state, now| {
                let fresh = SessionId::mint(now, bucket, self.region, rand::random());
                state.claim(request, fresh, now)
            });
            if let Some(claimed) = claimed? {
                return Ok(claimed);
            }
        }
    }
}

#[async_trait]
impl<C: TimeSource> Sessions for MemoryRegistry<C> {
    async fn heartbeat(&self, id: SessionId, who: &Authority, _origin: &Origin) -> Result<Heartbeat, Error> {
        Ok(self.step(id.bucket(), |state, now| state.heartbeat(id, who, now)))
    }

    async fn end(
        &self,
        id: SessionId,
        who: &Authority,
        reason: EndReason,
        origin: &Origin,
    ) -> Result<Ended, Error> {
        Ok(self.step(id.bucket(), |state, now| state.end(id, who, reason, origin, now)))
    }

    async fn session(&self, id: SessionId, who: &Authority) -> Result<Option<Live>, Error> {
        Ok(self.step(id.bucket(), |state, now| state.session(id, who, now)))
    }

    async fn renewed_since(
        &self,
        bucket: Bucket,
        since: RegistryTime,
    ) -> Result<Vec<LatestHeartbeat>, Error> {
        Ok(self.lock(bucket).renewed_since(since))
    }
}

#[async_trait]
impl<C: TimeSource> Pools for MemoryRegistry<C> {
    async fn end_all(&self, pool: &PoolId, reason: EndReason, origin: &Origin) -> Result<EndedAll, Error> {
        self.step(pool.bucket(), |state, now| state.end_all(pool, reason, origin, now))
    }

    async fn revise(&self, pool: &PoolId, terms: Terms, origin: &Origin) -> Result<EndedAll, Error> {
        self.step(pool.bucket(), |state, now| state.revise(pool, terms, origin, now))
    }

    async fn view(&self, pool: &PoolId, max: usize) -> Result<PoolView, Error> {
        self.step(pool.bucket(), |state, now| state.view(pool, max, now))
    }
}

#[async_trait]
impl<C: TimeSource> Expiry for MemoryRegistry<C> {
    async fn now(&self) -> Result<RegistryTime, Error> {
        Ok(self.clock.read())
    }

    async fn sweep(&self, bucket: Bucket, max: usize) -> Result<Swept, Error> {
        Ok(self.step(bucket, |state, now| state.sweep(max, now)))
    }

    async fn due(&self, bucket: Bucket) -> Result<Option<RegistryTime>, Error> {
        Ok(self.lock(bucket).due())
    }
}

#[async_trait]
impl<C: TimeSource> Journal for MemoryRegistry<C> {
    async fn journal_read(&self, max: usize) -> Result<JournalRead, Error> {
        let waiting: Vec<_> = self.backlog.waiting().collect();
        // An equal share of each bucket, so that a bucket with a hundred thousand ends delays no admission of
        // another bucket.
        let each = max.div_ceil(waiting.len().max(1));
        let mut read = JournalRead::default();
        for bucket in waiting {
            read.entries.extend(self.lock(bucket).waiting(each));
        }
        Ok(read)
    }

    async fn journal_acknowledge(&self, through: Receipt) -> Result<(), Error> {
        let mut state = self.lock(through.bucket);
        let forgotten = state.journal_mut().acknowledge(through.position);
        let emptied = state.journal().is_empty();
        self.backlog.shrank(through.bucket, forgotten, emptied);
        Ok(())
    }

    fn journal_depth(&self) -> usize {
        self.backlog.depth()
    }

    async fn journal_woken(&self) {
        self.backlog.wakeup().await;
    }

    async fn journal_end(&self, bucket: Bucket) -> Result<Receipt, Error> {
        Ok(self.lock(bucket).receipt())
    }
}
