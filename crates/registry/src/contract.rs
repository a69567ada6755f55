//! The contract of every backend. A new call belongs to the trait of its subject, with clauses in
//! `conformance`.

use std::time::Instant;

use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use seatkeeper_core::{
    Authority, Bucket, Claim, Denial, EndReason, Event, LatestHeartbeat, Origin, Particulars, Policy, PoolId,
    RegistryTime, Seats, Session, SessionId, Span, Terms,
};

use crate::Error;
use crate::clock_trust::Store;

/// A registry of the live sessions of all pools.
///
/// Each call is one atomic step on one pool, decided by the rule and the registry's own clock. The events of
/// a call are in the journal when the call returns, so that no crash separates a seat from its record. A
/// pool's events are numbered without a gap, in the order of the changes. A claim is idempotent: a retry
/// takes no second seat.
pub trait Registry: Admission + Sessions + Pools + Expiry + Journal {}

impl<R: Admission + Sessions + Pools + Expiry + Journal + ?Sized> Registry for R {}

/// A moment at which a pool was closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClosedAt {
    /// The registry's time.
    pub time: RegistryTime,
    /// The epoch of the pool's bucket, as in a [`Receipt`].
    pub epoch: u64,
}

/// Opens pools and decides claims.
#[async_trait]
pub trait Admission: Send + Sync + 'static {
    /// Opens a pool with the number `seq` of its last event on record and the sessions that are live in the
    /// ledger. Each session gets one full TTL from now, or keeps its end if its kind of pool has no
    /// heartbeats. Sessions that are over, or ended by the terms, end. Does nothing to an open pool.
    async fn open(
        &self,
        pool: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        live: Vec<Session>,
    ) -> Result<(), Error>;

    /// Returns this moment if the pool is closed. May return `None` if the pool is open.
    async fn closed_at(&self, _pool: &PoolId) -> Result<Option<ClosedAt>, Error> {
        Ok(Some(ClosedAt { time: RegistryTime::MAX, epoch: 0 }))
    }

    /// Opens a pool as [`open`](Self::open) does, with a record that was read after [`closed_at`](Self::closed_at).
    /// Does nothing if the registry's time is 30 s later by now: the pool may have been open and closed again
    /// meanwhile, and its events would get numbers that are taken. For the same reason does nothing, or returns
    /// [`Error::NotServing`], if the bucket is in another epoch by now.
    async fn open_if_recent(
        &self,
        _closed_at: ClosedAt,
        pool: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        live: Vec<Session>,
    ) -> Result<(), Error> {
        self.open(pool, seq, terms, live).await
    }

    /// Decides a claim and carries it out.
    async fn claim(&self, request: Request<'_>) -> Result<Claimed, Error>;
}

/// Renews, ends and reads single sessions.
#[async_trait]
pub trait Sessions: Send + Sync + 'static {
    /// Renews a session.
    async fn heartbeat(&self, id: SessionId, who: &Authority, origin: &Origin) -> Result<Heartbeat, Error>;

    /// Renews a session whose pool is cached. Returns `None` if the pool must be searched for; in that case,
    /// call [`heartbeat`](Self::heartbeat).
    async fn heartbeat_remembered(
        &self,
        id: SessionId,
        who: &Authority,
        origin: &Origin,
    ) -> Result<Option<Heartbeat>, Error> {
        self.heartbeat(id, who, origin).await.map(Some)
    }

    /// Ends a session, as `expired` if over before. A release by one of several users who share a session
    /// removes only the user, and the session goes on.
    async fn end(
        &self,
        id: SessionId,
        who: &Authority,
        reason: EndReason,
        origin: &Origin,
    ) -> Result<Ended, Error>;

    /// Reads a live session, if `who` may see the session. Sessions that are over end first.
    async fn session(&self, id: SessionId, who: &Authority) -> Result<Option<Live>, Error>;

    /// Returns the latest heartbeats of the bucket's sessions renewed after `since`.
    async fn renewed_since(&self, bucket: Bucket, since: RegistryTime)
    -> Result<Vec<LatestHeartbeat>, Error>;
}

/// Ends, revises and reads whole pools.
#[async_trait]
pub trait Pools: Send + Sync + 'static {
    /// Ends every session of a pool.
    async fn end_all(&self, pool: &PoolId, reason: EndReason, origin: &Origin) -> Result<EndedAll, Error>;

    /// Offers terms to a pool. Newer terms take effect at once, and closed terms end the pool's sessions.
    /// Older terms change nothing.
    async fn revise(&self, pool: &PoolId, terms: Terms, origin: &Origin) -> Result<EndedAll, Error>;

    /// Reads a pool and at most `max` of its live sessions, the stalest first. Sessions that are over end
    /// first, as in a sweep.
    async fn view(&self, pool: &PoolId, max: usize) -> Result<PoolView, Error>;
}

/// A reading of the registry's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeReading {
    /// The registry's time.
    pub now: RegistryTime,
    /// Time stands still at `now` by design: the lease of the store's clock is over, and no session expires.
    pub is_frozen: bool,
}

/// Reads the registry's time, and ends sessions that are over.
#[async_trait]
pub trait Expiry: Send + Sync + 'static {
    /// Reads the registry's time.
    async fn now(&self) -> Result<RegistryTime, Error>;

    /// Reads the registry's time, and says whether time stands still. Only a registry with a lease of its clock can stop
    /// its time.
    async fn read_time(&self) -> Result<TimeReading, Error> {
        Ok(TimeReading { now: self.now().await?, is_frozen: false })
    }

    /// Reads the time that dates the next step on a pool of `bucket`. Buckets of one registry may have different servers,
    /// whose clocks need not agree.
    async fn now_in(&self, _bucket: Bucket) -> Result<RegistryTime, Error> {
        self.now().await
    }

    /// Returns an estimate of the time of [`now_in`](Self::now_in) without a request each time. The estimate is not behind
    /// that time unless the clock was just set, and ahead by
    /// [`ESTIMATE_AHEAD_MAX`](seatkeeper_core::ESTIMATE_AHEAD_MAX) at most.
    async fn approximate_now_in(&self, bucket: Bucket) -> Result<RegistryTime, Error> {
        self.now_in(bucket).await
    }

    /// Returns a low watermark of event times: from the call on, no bucket records an event dated earlier. Fails
    /// unless every bucket is served.
    async fn low_watermark(&self) -> Result<RegistryTime, Error> {
        self.now().await
    }

    /// Ends the sessions of a bucket that are over, and records counted denials, in at most `max` pools per
    /// call. Any node may sweep any bucket at any time.
    async fn sweep(&self, bucket: Bucket, max: usize) -> Result<Swept, Error>;

    /// Returns a lower bound of the time at which the bucket needs a sweep, or `None` if the bucket has no
    /// pool.
    async fn due(&self, bucket: Bucket) -> Result<Option<RegistryTime>, Error>;

    /// Returns the served buckets that need a sweep now.
    async fn due_buckets(&self) -> Result<Vec<Bucket>, Error> {
        let now = self.now().await?;
        let looks: Vec<_> = Bucket::all().map(|bucket| is_due(self, bucket, now)).collect();
        let due: Vec<_> = stream::iter(looks).buffer_unordered(BUCKETS_AT_ONCE).try_collect().await?;
        Ok(due.into_iter().flatten().collect())
    }
}

/// Reads and acknowledges the journals of the buckets.
#[async_trait]
pub trait Journal: Send + Sync + 'static {
    /// Reads the oldest unacknowledged events, at most about `max`, in order per bucket. Reads are repeatable.
    /// Later events of other nodes may come with the next read; [`journal_end`](Self::journal_end) returns the
    /// end of a bucket's journal.
    async fn journal_read(&self, max: usize) -> Result<JournalRead, Error>;

    /// Deletes the events of a bucket up to a position that the ledger has. Other nodes may read the events a
    /// moment longer.
    async fn journal_acknowledge(&self, through: Receipt) -> Result<(), Error>;

    /// Returns the number of events in the journal.
    fn journal_depth(&self) -> usize;

    /// Waits for a new event. Wake-ups may be spurious.
    async fn journal_woken(&self);

    /// Returns the present end of the bucket's journal. Once acknowledged, the ledger has every event of the
    /// bucket before this call.
    async fn journal_end(&self, bucket: Bucket) -> Result<Receipt, Error>;

    /// Returns the undecodable entries of the latest reads. Each entry holds up the journal of one bucket.
    fn unreadable_entries(&self) -> Vec<UnreadableEntry> {
        Vec::new()
    }
}

/// Number of buckets queried concurrently.
const BUCKETS_AT_ONCE: usize = 16;

async fn is_due<R: Expiry + ?Sized>(
    registry: &R,
    bucket: Bucket,
    now: RegistryTime,
) -> Result<Option<Bucket>, Error> {
    match registry.due(bucket).await {
        Ok(due) => Ok(due.filter(|due| *due <= now).map(|_| bucket)),
        Err(Error::NotServing { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A claim with the inputs of its decision and its record.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The pool.
    pub pool: &'a PoolId,
    /// The claim.
    pub claim: &'a Claim,
    /// The policy of the decision.
    pub policy: &'a Policy,
    /// The origin of the claim.
    pub origin: &'a Origin,
    /// The client's particulars, recorded with an admission.
    pub particulars: &'a Particulars,
}

/// A position in a bucket's journal. Events up to an acknowledged position are durable. Receipts compare by
/// epoch and then by position. A position of an old epoch is never acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The bucket.
    pub bucket: Bucket,
    /// The epoch of the bucket at this position.
    pub epoch: u64,
    /// Number of events in the bucket's journal in this epoch. 0: there is nothing to wait for.
    pub position: u64,
}

/// The result of a read of the journal.
#[derive(Clone, Debug, Default)]
pub struct JournalRead {
    /// Unacknowledged events.
    pub entries: Vec<JournalEntry>,
    /// Acknowledged positions of the journals that were read, whichever node acknowledged them. In a shared
    /// registry, a node learns of events recorded by other nodes this way.
    pub acknowledged: Vec<Receipt>,
}

/// An event and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalEntry {
    /// The event's position.
    pub receipt: Receipt,
    /// The event.
    pub event: Event,
}

/// An undecodable or missing journal entry. The drain reads no event of the bucket past the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnreadableEntry {
    /// The store with the journal.
    pub store: Store,
    /// The bucket.
    pub bucket: Bucket,
    /// The name of the journal in the store.
    pub stream: String,
    /// The id of the entry in the journal.
    pub id: String,
    /// The time of the node's first read of the entry.
    pub since: Instant,
}

/// A live session, with its expiry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// The session.
    pub session: Session,
    /// The session's pool.
    pub pool: PoolId,
    /// The time at which the session is over unless renewed.
    pub expires: RegistryTime,
    /// The span from now to `expires`.
    pub expires_in: Span,
}

/// The times of a session that was just renewed. A heartbeat changes nothing else of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Liveness {
    /// The session's pool.
    pub pool: PoolId,
    /// The time of the heartbeat.
    pub last_heartbeat: RegistryTime,
    /// The session's TTL.
    pub ttl: Span,
    /// The time at which the session is over unless renewed.
    pub expires: RegistryTime,
    /// The span from now to `expires`.
    pub expires_in: Span,
}

impl From<Live> for Liveness {
    fn from(Live { session, pool, expires, expires_in }: Live) -> Self {
        Self { pool, last_heartbeat: session.last_heartbeat, ttl: session.ttl, expires, expires_in }
    }
}

/// The outcome of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The answer.
    pub answer: Answer,
    /// Number of live sessions after the claim.
    pub live: u32,
    /// The limit in force.
    pub limit: Seats,
    /// The events that must be durable before the answer: every event that the decision rests on.
    pub receipt: Receipt,
}

/// The answer to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The client has a seat.
    Granted {
        /// The way to the seat.
        how: Granted,
        /// The client's session.
        session: Box<Live>,
        /// The sessions that had to end for the claim, without expired sessions.
        ended: Vec<(SessionId, EndReason)>,
    },
    /// The client has no seat.
    Denied(Denial),
}

/// The way in which a client got its seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    /// A new session took a seat.
    Admitted,
    /// The session named by the claim goes on.
    Refreshed,
    /// The holder's session goes on.
    Resumed,
    /// The holder's session stays unchanged.
    Existing,
}

/// The outcome of a heartbeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// The session lives on.
    Renewed(Liveness),
    /// The session was over, and has ended.
    Over {
        /// The session's last heartbeat.
        last_heartbeat: RegistryTime,
        /// The events that must be durable before the answer.
        receipt: Receipt,
    },
    /// The session is not live here, or belongs to another caller.
    Missing,
    /// The session was never admitted: neither the ledger nor the journal has it.
    NeverWas,
}

/// The outcome of the end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The session ended in this call.
    Now {
        /// The requested reason, or `expired` if the session was over before.
        reason: EndReason,
        /// The events that must be durable before the answer.
        receipt: Receipt,
    },
    /// The caller left the session, shared with other users who go on.
    Left,
    /// The session is not live here, or belongs to another caller.
    Missing,
}

/// The outcome of a call that may end all sessions of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedAll {
    /// Number of sessions ended by the call, sessions that were over before included.
    pub count: usize,
    /// The events that must be durable before the answer.
    pub receipt: Receipt,
}

/// A pool at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolView {
    /// Number of live sessions.
    pub live: u32,
    /// The newest terms of the pool.
    pub terms: Option<Terms>,
    /// Some of the pool's sessions.
    pub sessions: Vec<Live>,
}

/// The outcome of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Number of ended sessions.
    pub ended: usize,
    /// True if the bucket needs another sweep already.
    pub more: bool,
}
