//! Joins the registry, which decides, with the ledger, which remembers: an answer is given once what
//! it rests on is on record.

mod commits;
mod endings;
mod history;

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_core::{Authority, Bucket, EndReason, Origin, PoolId, RegistryTime, SessionId, Terms};
use seatkeeper_ledger::{BucketMode, Ledger, LivePool};
use seatkeeper_registry::{
    Answer, Claimed, Ended, EndedAll, Error as RegistryError, Granted, Heartbeat, Live, PoolView, Receipt,
    Registry, Request,
};

use crate::error::Error;
use crate::failover::Bearings;
use crate::settings::Durability;
pub(crate) use commits::{Commits, Overtaken};
pub(crate) use endings::{Endings, Listener};
pub(crate) use history::Past;

/// How often a call opens the pool that it found closed. Once is enough, unless the pool is closed
/// again in between, which takes a minute without a session.
const OPENINGS_PER_CALL_MAX: usize = 3;

/// The engine that every API uses.
pub(crate) struct Engine {
    registry: Arc<dyn Registry>,
    ledger: Ledger,
    commits: Arc<Commits>,
    endings: Arc<Endings>,
    bearings: Arc<Bearings>,
    commit_timeout: Duration,
}

/// What a heartbeat found.
pub(crate) enum Beat {
    /// The session lives on.
    Renewed(Box<Live>),
    /// It has ended.
    Ended(Past),
    /// It never was, or is not the caller's.
    Missing,
}

impl Engine {
    pub(crate) fn new(
        registry: Arc<dyn Registry>,
        ledger: Ledger,
        commits: Arc<Commits>,
        endings: Arc<Endings>,
        bearings: Arc<Bearings>,
        commit_timeout: Duration,
    ) -> Self {
        Self { registry, ledger, commits, endings, bearings, commit_timeout }
    }

    /// An error unless this server should be asked. One that is alone must be able to put admissions on record. One of
    /// several must reach the registry; a ledger that is out of reach is so for the others as well, and heartbeats go on.
    pub(crate) async fn is_ready(&self) -> Result<(), Error> {
        if let Some(is_ready) = self.bearings.are_served() {
            return if is_ready { Ok(()) } else { Err(Error::OutOfStep) };
        }
        if self.commits.are_failing() {
            return Err(Error::NotDurable);
        }
        self.ledger.ping().await.map_err(Error::Ledger)
    }

    /// The registry's time.
    pub(crate) async fn now(&self) -> Result<RegistryTime, Error> {
        Ok(self.registry.now().await?)
    }

    /// Decides a claim. A seat is granted only once its admission is as durable as asked for; a retry that
    /// finds it waits for that as well.
    pub(crate) async fn claim(&self, request: Request<'_>, durability: Durability) -> Result<Claimed, Error> {
        let bucket = request.pool.bucket();
        for _ in 0..OPENINGS_PER_CALL_MAX {
            let epoch = self.bearings.epoch(bucket);
            match self.registry.claim(request).await {
                Ok(claimed) => {
                    if let Answer::Granted { how, .. } = claimed.answer {
                        self.settled(claimed.receipt, durability).await?;
                        // An admission on record is one of its epoch; a seat that was held already may be none by now.
                        if (how, durability) != (Granted::Admitted, Durability::Ledger) {
                            self.bearings.still(bucket, epoch).await?;
                        }
                    }
                    return Ok(claimed);
                }
                Err(RegistryError::PoolNotOpen) => self.open(request.pool, request.policy.terms).await?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(RegistryError::PoolNotOpen.into())
    }

    /// Renews a session, or tells why it ended.
    pub(crate) async fn heartbeat(
        &self,
        id: SessionId,
        who: &Authority,
        origin: &Origin,
    ) -> Result<Beat, Error> {
        let epoch = self.bearings.epoch(id.bucket());
        if self.bearings.mode(id.bucket()) == BucketMode::Deny {
            return self.beat_on_record(id, who).await;
        }
        match self.registry.heartbeat(id, who, origin).await? {
            Heartbeat::Renewed(live) => {
                self.bearings.still(id.bucket(), epoch).await?;
                Ok(Beat::Renewed(live))
            }
            Heartbeat::Over { last_heartbeat, receipt } => {
                self.durable(receipt).await?;
                Ok(Beat::Ended(Past::expired(last_heartbeat)))
            }
            Heartbeat::Missing => {
                let past = self.past(id, who).await?;
                Ok(past.map_or(Beat::Missing, Beat::Ended))
            }
        }
    }

    /// Ends a session; says whether it was live.
    pub(crate) async fn end(
        &self,
        id: SessionId,
        who: &Authority,
        reason: EndReason,
        origin: &Origin,
        durability: Durability,
    ) -> Result<bool, Error> {
        match self.registry.end(id, who, reason, origin).await? {
            Ended::Now { reason: ended_for, receipt } => {
                self.settled(receipt, durability).await?;
                Ok(ended_for == reason)
            }
            Ended::Left => Ok(true),
            Ended::Missing => {
                // What ended it must be on record before anyone is told that it is over.
                match durability {
                    Durability::Ledger => self.past(id, who).await.map(drop)?,
                    Durability::Journal => {
                        self.settled(self.registry.journal_end(id.bucket()).await?, durability).await?;
                    }
                }
                Ok(false)
            }
        }
    }

    /// Ends every session of a pool; says how many those were.
    pub(crate) async fn end_all(
        &self,
        pool: &PoolId,
        reason: EndReason,
        origin: &Origin,
        durability: Durability,
    ) -> Result<usize, Error> {
        match self.registry.end_all(pool, reason, origin).await {
            Ok(EndedAll { count, receipt }) => {
                self.settled(receipt, durability).await?;
                Ok(count)
            }
            // Every pool with a live session is open.
            Err(RegistryError::PoolNotOpen) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// Lets a pool learn changed terms at once. The pool is opened if need be: a claim that is under
    /// way with the old terms then finds the new ones.
    pub(crate) async fn revise(&self, pool: &PoolId, terms: Terms, origin: &Origin) -> Result<(), Error> {
        for _ in 0..OPENINGS_PER_CALL_MAX {
            match self.registry.revise(pool, terms, origin).await {
                Ok(EndedAll { receipt, .. }) => return self.durable(receipt).await,
                Err(RegistryError::PoolNotOpen) => self.open(pool, Some(terms)).await?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(RegistryError::PoolNotOpen.into())
    }

    /// Listens for the end of a session, unless as many do as may: `max` in all, and a few for each session.
    pub(crate) fn listen(&self, id: SessionId, max: usize) -> Option<Listener> {
        self.endings.listen(id, max)
    }

    /// A live session, if `who` may see it.
    pub(crate) async fn live(&self, id: SessionId, who: &Authority) -> Result<Option<Live>, Error> {
        Ok(self.registry.session(id, who).await?)
    }

    /// A pool and some of its sessions; none if nobody was in it lately.
    pub(crate) async fn view(&self, pool: &PoolId, max: usize) -> Result<Option<PoolView>, Error> {
        match self.registry.view(pool, max).await {
            Ok(view) => Ok(Some(view)),
            Err(RegistryError::PoolNotOpen) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns once the ledger knows all that had happened in the bucket before this call.
    pub(crate) async fn on_record(&self, bucket: Bucket) -> Result<(), Error> {
        self.durable(self.registry.journal_end(bucket).await?).await
    }

    async fn open(&self, pool: &PoolId, terms: Option<Terms>) -> Result<(), Error> {
        // Number and sessions of one instant: what is decided in this pool then follows on the record, or is refused by it.
        let LivePool { seq, sessions, .. } = self.ledger.pool_head(pool).await.map_err(Error::Ledger)?;
        Ok(self.registry.open(pool, seq, terms, sessions).await?)
    }

    /// Waits for what an answer of this durability rests on.
    async fn settled(&self, receipt: Receipt, durability: Durability) -> Result<(), Error> {
        match durability {
            Durability::Ledger => self.durable(receipt).await,
            Durability::Journal => {
                self.commits.keep_up(receipt, self.registry.journal_depth() as u64).await;
                Ok(())
            }
        }
    }

    /// Waits until the ledger has all up to `receipt`.
    async fn durable(&self, receipt: Receipt) -> Result<(), Error> {
        let committed = self.commits.reached(receipt);
        match tokio::time::timeout(self.commit_timeout, committed).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(Overtaken)) | Err(_) => Err(Error::NotDurable),
        }
    }
}
