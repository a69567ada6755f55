//! What every backend promises.

use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use seatkeeper_core::{
    Authority, Bucket, Claim, Denial, EndReason, Event, Origin, Particulars, Policy, PoolId, RegistryTime,
    Seats, Session, SessionId, Span, Terms,
};

use crate::{Error, Share};

/// The live sessions of all pools.
///
/// Each call is one atomic step on one pool, decided by the rule and by the registry's own clock, and
/// its events are in the journal when it returns: no crash separates a seat from its record. Changes
/// of one pool are numbered without a gap in the order in which they were made. A call that was
/// repeated, or whose answer was lost, takes no second seat.
pub trait Registry: Admission + Sessions + Pools + Expiry + Journal {}

impl<R: Admission + Sessions + Pools + Expiry + Journal + ?Sized> Registry for R {}

/// Opens pools and decides claims.
#[async_trait]
pub trait Admission: Send + Sync + 'static {
    /// Opens a pool whose last event on record has number `seq`, with the sessions that the ledger
    /// knows as live. Each gets one full TTL from now, or keeps its end if its kind of pool has no
    /// heartbeats; what is over, or what the terms say has ended, ends. Does nothing to a pool that is open.
    async fn open(
        &self,
        pool: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        live: Vec<Session>,
    ) -> Result<(), Error>;

    /// Decides a claim and carries it out.
    async fn claim(&self, request: Request<'_>) -> Result<Claimed, Error>;
}

/// Renews, ends and shows single sessions.
#[async_trait]
pub trait Sessions: Send + Sync + 'static {
    /// Renews a session.
    async fn heartbeat(&self, id: SessionId, who: &Authority, origin: &Origin) -> Result<Heartbeat, Error>;

    /// Renews a session whose pool is remembered; `None` if the pool must be searched for, as
    /// [`heartbeat`](Self::heartbeat) does.
    async fn heartbeat_remembered(
        &self,
        id: SessionId,
        who: &Authority,
        origin: &Origin,
    ) -> Result<Option<Heartbeat>, Error> {
        self.heartbeat(id, who, origin).await.map(Some)
    }

    /// Ends a session; as `expired` if it was over before. A release by one of several users who share it
    /// lets that one out, and the session goes on: nobody gives back another's seat.
    async fn end(
        &self,
        id: SessionId,
        who: &Authority,
        reason: EndReason,
        origin: &Origin,
    ) -> Result<Ended, Error>;

    /// A live session, if `who` may see it. One that is over ends first, and is not live.
    async fn session(&self, id: SessionId, who: &Authority) -> Result<Option<Live>, Error>;

    /// The latest heartbeats of the bucket's sessions that were renewed after `since`.
    async fn renewed_since(
        &self,
        bucket: Bucket,
        since: RegistryTime,
    ) -> Result<Vec<(SessionId, RegistryTime)>, Error>;
}

/// Ends, revises and shows whole pools.
#[async_trait]
pub trait Pools: Send + Sync + 'static {
    /// Ends every session of a pool.
    async fn end_all(&self, pool: &PoolId, reason: EndReason, origin: &Origin) -> Result<EndedAll, Error>;

    /// Lets a pool learn newer terms at once; closed terms end its sessions. Older terms change nothing.
    async fn revise(&self, pool: &PoolId, terms: Terms, origin: &Origin) -> Result<EndedAll, Error>;

    /// A pool and at most `max` of its live sessions, the stalest first. What is over ends first, as in
    /// a sweep.
    async fn view(&self, pool: &PoolId, max: usize) -> Result<PoolView, Error>;
}

/// Tells the registry's time, and ends what is over by it.
#[async_trait]
pub trait Expiry: Send + Sync + 'static {
    /// The registry's time now.
    async fn now(&self) -> Result<RegistryTime, Error>;

    /// The registry's time as far as it is known without asking for it each time: not behind it unless the clock has
    /// just been set, and ahead of it by a fraction of a second at most.
    async fn about_now(&self) -> Result<RegistryTime, Error> {
        self.now().await
    }

    /// Ends what is over in one bucket, and records denials that were only counted: at most `max`
    /// pools a call. Any node may sweep any bucket at any time.
    async fn sweep(&self, bucket: Bucket, max: usize) -> Result<Swept, Error>;

    /// When the bucket will have something to sweep, at the earliest; none if nothing is in it.
    async fn due(&self, bucket: Bucket) -> Result<Option<RegistryTime>, Error>;

    /// The buckets that have something to sweep by now, those left out that are not served.
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
    /// The oldest events of a share of the buckets that are not acknowledged, at most about `max`, those of a bucket in
    /// order. Reading them again gives them again. Events that other nodes wrote behind this node's own may come with the
    /// next read only: [`journal_end`](Self::journal_end) says how far a bucket's journal goes.
    async fn journal_read(&self, share: Share, max: usize) -> Result<JournalRead, Error>;

    /// Forgets the events of a bucket up to this position: they are in the ledger. Who shares the journal may read
    /// them a moment longer.
    async fn journal_acknowledge(&self, through: Receipt) -> Result<(), Error>;

    /// How many events wait in the journal.
    fn journal_depth(&self) -> usize;

    /// Returns once an event may have come in the share's buckets since the last call of their reader. It may return for
    /// nothing.
    async fn journal_stirred(&self, share: Share);

    /// The end of the bucket's journal as it is now: once it is acknowledged, the ledger knows all
    /// that had happened in the bucket before this call.
    async fn journal_end(&self, bucket: Bucket) -> Result<Receipt, Error>;
}

/// Buckets that are looked at in one go.
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

/// A claim and all that it is decided and recorded by.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// The pool.
    pub pool: &'a PoolId,
    /// The claim.
    pub claim: &'a Claim,
    /// How to decide it.
    pub policy: &'a Policy,
    /// What caused it.
    pub origin: &'a Origin,
    /// What goes on record with an admission.
    pub particulars: &'a Particulars,
}

/// A place in a bucket's journal. What happened up to it is durable once it is acknowledged. Places compare by
/// epoch and then by position; one of an epoch that is over is never acknowledged any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The bucket.
    pub bucket: Bucket,
    /// The epoch of the bucket in which the journal got there.
    pub epoch: u64,
    /// How many events the bucket's journal had held in this epoch; 0: nothing to wait for.
    pub position: u64,
}

/// What a look at the journal found.
#[derive(Clone, Debug, Default)]
pub struct JournalRead {
    /// Events that wait.
    pub entries: Vec<JournalEntry>,
    /// How far the journals that were looked at are acknowledged already, by whomever: a registry that several
    /// nodes share tells each of them so what another has brought to the ledger.
    pub acknowledged: Vec<Receipt>,
}

/// An event and its place.
#[derive(Clone, Debug)]
pub struct JournalEntry {
    /// Its place.
    pub receipt: Receipt,
    /// The event.
    pub event: Event,
}

/// A live session, and how it stands now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// The session.
    pub session: Session,
    /// Its pool.
    pub pool: PoolId,
    /// When it is over unless renewed.
    pub expires: RegistryTime,
    /// How long that is from now.
    pub expires_in: Span,
}

/// What became of a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The answer.
    pub answer: Answer,
    /// Sessions that are live after it.
    pub live: u32,
    /// The limit that was in force.
    pub limit: Seats,
    /// What must be durable before the answer is given: all that it was decided by.
    pub receipt: Receipt,
}

/// The answer to a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The client has a seat.
    Granted {
        /// In which way.
        how: Granted,
        /// Its session.
        session: Box<Live>,
        /// The sessions that had to end for it, those that were merely over left out.
        ended: Vec<(SessionId, EndReason)>,
    },
    /// It has none.
    Denied(Denial),
}

/// How a client came by its seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    /// A new session took a seat.
    Admitted,
    /// The session that was named goes on.
    Refreshed,
    /// The holder's session goes on.
    Resumed,
    /// The holder's session stands as it was.
    Existing,
}

/// What a heartbeat found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// The session lives on.
    Renewed(Box<Live>),
    /// It was over, and has ended now.
    Over {
        /// Its last heartbeat.
        last_heartbeat: RegistryTime,
        /// What must be durable before this is answered.
        receipt: Receipt,
    },
    /// It is not live here, or not the caller's.
    Missing,
    /// No such session was ever admitted: neither the record nor the journal has it.
    NeverWas,
}

/// What the end of one session found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It ended now, for this reason.
    Now {
        /// The reason asked for, or `expired` if it was over before.
        reason: EndReason,
        /// What must be durable before this is answered.
        receipt: Receipt,
    },
    /// The caller is out of it, and others go on with it.
    Left,
    /// It is not live here, or not the caller's.
    Missing,
}

/// What the end of a pool's sessions found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedAll {
    /// How many ended now, those included that were over before.
    pub count: usize,
    /// What must be durable before this is answered.
    pub receipt: Receipt,
}

/// A pool at one instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolView {
    /// How many sessions are live.
    pub live: u32,
    /// The newest terms it has seen.
    pub terms: Option<Terms>,
    /// Some of its sessions.
    pub sessions: Vec<Live>,
}

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Sessions that it ended.
    pub ended: usize,
    /// Whether more is due already.
    pub more: bool,
}
