//! The registry of many nodes: live sessions in Redis or Valkey.
//!
//! Each step is one script, hence atomic, and one round trip; the scripts (`redis/scripts`) are the rule of
//! `seatkeeper-core` once more, and the model test holds them to it. Pools are spread over buckets; all that changes
//! together is in one bucket, and so in one slot of a cluster. Time is the server's. What a server may have lost shows in
//! the epoch and the identity at the head of each bucket: see `docs/failover.md`.
//!
//! To add an operation: a script in a file of its own, its line in `scripts.rs`, and a method here that names what it is
//! told and what it replies.

mod backlog;
mod call;
mod claim;
mod codec;
mod expire;
mod find;
mod journal;
mod keys;
mod lease;
mod pools;
mod rebuild;
mod renewals;
mod reply;
mod roll_call;
mod scripts;
mod sessions;
mod settings;
mod slots;
mod survey;
mod sweep;
mod together;
mod whereabouts;

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use seatkeeper_core::{
    Authority, Bucket, EndReason, Origin, PoolId, RegistryTime, Session, SessionId, Terms,
};
use seatkeeper_redis::{Script, Servers};
use tokio::time::Instant;

use crate::contract::{
    Claimed, Ended, EndedAll, Heartbeat, JournalRead, Live, PoolView, Receipt, Registry, Request, Swept,
};
use crate::reckoning::{Known, Reckoning};
use crate::{ClockSteps, Epochs, Error, Share};
use backlog::Backlog;
use find::Searches;
use keys::AllKeys;
use renewals::Renewals;
pub use roll_call::{RollCall, Sighting};
use scripts::SCRIPTS;
pub use settings::Settings;
use slots::BucketSlots;
use survey::Surveys;
use together::Way;
use whereabouts::Remembered;
pub use whereabouts::{FindSession, Found, NoRecord};

/// Live sessions in Redis.
pub struct RedisRegistry {
    way: Way,
    /// The way on which journals are read and acknowledged; none: the same.
    way_to_journals: Option<Way>,
    settings: Settings,
    epochs: Arc<Epochs>,
    finder: Arc<dyn FindSession>,
    keys: AllKeys,
    slots: BucketSlots,
    backlog: Backlog,
    surveys: Surveys,
    /// When Redis was last told what is on record.
    acknowledged: Mutex<Option<Instant>>,
    renewals: Renewals,
    remembered: Remembered,
    searches: Searches,
    reckoning: Reckoning,
}

impl RedisRegistry {
    /// The registry on these servers, which it reaches as soon as it can. It serves the buckets in the epochs
    /// that it is told, and asks `finder` for sessions that other nodes admitted.
    pub fn new(
        servers: Servers,
        settings: Settings,
        epochs: Arc<Epochs>,
        finder: Arc<dyn FindSession>,
    ) -> Self {
        Self {
            way: Way::new(servers),
            way_to_journals: None,
            keys: AllKeys::new(),
            slots: BucketSlots::new(),
            backlog: Backlog::new(),
            surveys: Surveys::default(),
            acknowledged: Mutex::new(None),
            renewals: Renewals::new(),
            reckoning: Reckoning::default(),
            remembered: Remembered::new(settings.sessions_remembered_max),
            searches: Searches::new(),
            settings,
            epochs,
            finder,
        }
    }

    /// Reads the journals over these connections to the same servers. Must be called in the runtime where they are read:
    /// what is busy in another one then does not hold their events up.
    #[must_use]
    pub fn with_journals_over(mut self, servers: Servers) -> Self {
        self.way_to_journals = Some(Way::new(servers));
        self
    }

    /// Returns the steps of the servers' clocks that this node has seen.
    pub fn clock_steps(&self) -> &Arc<ClockSteps> {
        &self.surveys.clock_steps
    }

    fn way_of(&self, script: &Script) -> &Way {
        let of_journals = [&SCRIPTS.journal_read, &SCRIPTS.acknowledge];
        let is_of_journals = of_journals.into_iter().any(|its| std::ptr::eq(its, script));
        self.way_to_journals.as_ref().filter(|_| is_of_journals).unwrap_or(&self.way)
    }
}

#[async_trait]
impl Registry for RedisRegistry {
    async fn now(&self) -> Result<RegistryTime, Error> {
        let asked = std::time::Instant::now();
        let time = self.time().await?;
        self.reckoning.note(time, asked);
        Ok(time)
    }

    async fn about_now(&self) -> Result<RegistryTime, Error> {
        match self.reckoning.known() {
            Known::Time(time) => Ok(time),
            Known::Ask(_turn) => self.now().await,
        }
    }

    async fn open(
        &self,
        pool: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        live: Vec<Session>,
    ) -> Result<(), Error> {
        self.open_pool(pool, seq, terms, live).await
    }

    async fn claim(&self, request: Request<'_>) -> Result<Claimed, Error> {
        self.decide(request).await
    }

    async fn heartbeat(&self, id: SessionId, who: &Authority, _origin: &Origin) -> Result<Heartbeat, Error> {
        self.renew_session(id, who).await
    }

    async fn heartbeat_remembered(
        &self,
        id: SessionId,
        who: &Authority,
        _origin: &Origin,
    ) -> Result<Option<Heartbeat>, Error> {
        match self.remembered.get(id) {
            Some(whereabouts) => self.renew_at(whereabouts, id, who).await.map(Some),
            None => Ok(None),
        }
    }

    async fn end(
        &self,
        id: SessionId,
        who: &Authority,
        reason: EndReason,
        origin: &Origin,
    ) -> Result<Ended, Error> {
        self.end_session(id, who, reason, origin).await
    }

    async fn end_all(&self, pool: &PoolId, reason: EndReason, origin: &Origin) -> Result<EndedAll, Error> {
        self.end_sessions(pool, Some(reason), None, origin).await
    }

    async fn revise(&self, pool: &PoolId, terms: Terms, origin: &Origin) -> Result<EndedAll, Error> {
        self.end_sessions(pool, None, Some(terms), origin).await
    }

    async fn session(&self, id: SessionId, who: &Authority) -> Result<Option<Live>, Error> {
        self.show_session(id, who).await
    }

    async fn view(&self, pool: &PoolId, max: usize) -> Result<PoolView, Error> {
        self.view_pool(pool, max).await
    }

    async fn sweep(&self, bucket: Bucket, max: usize) -> Result<Swept, Error> {
        self.sweep_bucket(bucket, max).await
    }

    async fn due(&self, bucket: Bucket) -> Result<Option<RegistryTime>, Error> {
        self.due_next(bucket).await
    }

    async fn due_buckets(&self) -> Result<Vec<Bucket>, Error> {
        self.buckets_due().await
    }

    async fn renewed_since(
        &self,
        bucket: Bucket,
        since: RegistryTime,
    ) -> Result<Vec<(SessionId, RegistryTime)>, Error> {
        Ok(self.renewals.since(bucket, since))
    }

    async fn journal_read(&self, share: Share, max: usize) -> Result<JournalRead, Error> {
        self.read_journals(share, max).await
    }

    async fn journal_acknowledge(&self, through: Receipt) -> Result<(), Error> {
        self.take_as_recorded(through).await
    }

    fn journal_depth(&self) -> usize {
        self.backlog.depth()
    }

    async fn journal_stirred(&self, share: Share) {
        self.stirred(share).await;
    }

    async fn journal_end(&self, bucket: Bucket) -> Result<Receipt, Error> {
        self.end_of_journal(bucket).await
    }
}
