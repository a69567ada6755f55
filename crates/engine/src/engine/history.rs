//! Looks up ended sessions in the ledger. A session missing from the registry but live in the ledger is never
//! reported as over: the registry has lost memory and must be rebuilt.

use seatkeeper_core::{Authority, EndReason, PoolId, Reach, RegistryTime, SessionId};
use seatkeeper_ledger::sessions::{FoundSession, SessionRecord};
use seatkeeper_registry::{Error as RegistryError, Liveness};

use super::search_quota::settle;
use super::{Engine, HeartbeatOutcome, SearchQuota, kinds};
use crate::error::Error;
use crate::wall_clock;

/// The end of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndedSession {
    /// The reason of the end.
    pub reason: EndReason,
    /// The time of the last heartbeat, or of the admission if none followed.
    pub last_heartbeat: RegistryTime,
    /// The end is on record. `false` for a session that a node admitted alone: the session may live on in the node.
    pub is_on_record: bool,
}

impl EndedSession {
    fn from_record(record: &SessionRecord) -> Option<Self> {
        let reason = record.ended.as_ref()?.reason;
        Some(Self { reason, last_heartbeat: record.session.last_heartbeat, is_on_record: true })
    }

    pub(super) fn expired(last_heartbeat: RegistryTime) -> Self {
        Self { reason: EndReason::Expired, last_heartbeat, is_on_record: true }
    }
}

impl Engine {
    /// Returns the end of a session that the registry does not have for this caller; `None` if the session
    /// never existed or is out of the caller's reach. If the session is live in the ledger but missing from
    /// the registry, the registry has lost memory: the bucket is suspected and the result is
    /// `Err(NotServing)`.
    pub(super) async fn past(&self, id: SessionId, who: &Authority) -> Result<Option<EndedSession>, Error> {
        // The epoch before the look at the registry below. `suspect` has no effect if the bucket is raised in
        // between.
        let epoch = self.lease.epoch(id.bucket());
        let Some(FoundSession { record, is_node_local }) = self.found(id, who).await? else {
            return Ok(None);
        };
        if let Some(past) = EndedSession::from_record(&record) {
            return self.unless_moved(past, &record.pool).await.map(Some);
        }
        if is_node_local {
            // A node-local session is over once the registry, or the home, is back.
            let past = EndedSession::expired(record.session.last_heartbeat);
            return Ok(Some(EndedSession { is_on_record: false, ..past }));
        }
        let Some(record) = self.end_of_unseen(&record, who, who, epoch).await? else { return Ok(None) };
        match EndedSession::from_record(&record) {
            Some(past) => self.unless_moved(past, &record.pool).await.map(Some),
            None => Ok(None),
        }
    }

    /// Returns `Err(NotHome)` for a session that may go on in another region. A home comes back without the sessions that
    /// this region has on record, so a session that moved away is over once the home is here again.
    async fn unless_moved(&self, past: EndedSession, pool: &PoolId) -> Result<EndedSession, Error> {
        if past.reason == EndReason::Moved {
            self.check_home(pool).await?;
        }
        Ok(past)
    }

    /// Returns the record of an ended session, after the registry had no live session for `who`. Returns `None` if the
    /// session never existed, or lives on for other users alone, and `Err(NotServing)` if the session may be live: out of
    /// this node's reach, or missing from a registry after a loss of memory.
    ///
    /// `reader` is the authority over the record. The record of a shared session knows the first user alone, so a caller
    /// with a known share reads as the whole tenant.
    pub async fn ended(
        &self,
        id: SessionId,
        who: &Authority,
        reader: &Authority,
    ) -> Result<Option<SessionRecord>, Error> {
        let epoch = self.lease.epoch(id.bucket());
        match self.record(id, reader).await? {
            Some(record) if record.ended.is_some() => Ok(Some(record)),
            Some(record) => self.end_of_unseen(&record, who, reader, epoch).await,
            // The record may be in a journal that is unreadable at present.
            None => match self.live_anywhere(id, who).await? {
                Some(_) => Err(RegistryError::NotServing { bucket: id.bucket() }.into()),
                None => Ok(None),
            },
        }
    }

    /// Returns the record of a session after its end. `record` has no end yet, and the registry had no live session for
    /// `who` after the reading of `epoch`. Returns `None` if the session lives on for other users alone. If neither the
    /// registry has the session nor the ledger an end, the bucket is suspected and the result is `Err(NotServing)`. The pool
    /// of a home that has just arrived is opened instead.
    async fn end_of_unseen(
        &self,
        record: &SessionRecord,
        who: &Authority,
        reader: &Authority,
        epoch: u64,
    ) -> Result<Option<SessionRecord>, Error> {
        let (id, kind) = (record.session.id, record.pool.kind);
        let anyone = Authority::new(record.pool.tenant.clone(), Reach::Tenant).through(kind);
        if let Some(live) = self.live_anywhere(id, &anyone).await? {
            if who.covers(&live.pool, &live.session) {
                // The session is live after all: the registry had not found it before.
                return Err(RegistryError::NotServing { bucket: id.bucket() }.into());
            }
            // The caller does not share the session any more.
            return Ok(None);
        }
        // The session may have ended after the first read of the record.
        let record_now = self.record(id, reader).await?;
        if let Some(ended) = record_now.filter(|record| record.ended.is_some()) {
            return Ok(Some(ended));
        }
        let backend = self.backend(kind, id.bucket())?;
        if self.has_arrived_unopened(&record.pool).await? || !backend.suspect(&self.lease, id.bucket(), epoch)
        {
            self.open(backend, &record.pool, None).await?;
        }
        Err(RegistryError::NotServing { bucket: id.bucket() }.into())
    }

    /// Answers a heartbeat while no registry serves the session's bucket. A session live in the ledger is
    /// renewed: no session ends until a registry serves again, and a rebuild gives each session a full TTL. The
    /// lease must cover `epoch`: on a node without a lease a registry may serve again unseen. A bucket that nobody serves
    /// has no such epoch, so the epoch on record must stay as well.
    pub(super) async fn beat_on_record<Q: SearchQuota>(
        &self,
        (id, epoch): (SessionId, u64),
        who: &Authority,
        search: Q::Search,
    ) -> Result<HeartbeatOutcome, Q::Error> {
        let raised = self.lease.raised(id.bucket());
        let found = self.ledger.find_session(id).await.map_err(Error::from);
        let found = found.map(|found| {
            found.map(|found| found.record).filter(|record| who.covers(&record.pool, &record.session))
        });
        settle(search, &found);
        let Some(record) = found? else {
            // The session may be in a journal that is unreadable at present.
            return Err(Error::from(RegistryError::NotServing { bucket: id.bucket() }).into());
        };
        if let Some(past) = EndedSession::from_record(&record) {
            return Ok(HeartbeatOutcome::Ended(self.unless_moved(past, &record.pool).await?));
        }
        self.lease.check(id.bucket(), epoch).await.map_err(Error::from)?;
        if self.lease.raised(id.bucket()) != raised {
            return Err(Error::from(RegistryError::NotServing { bucket: id.bucket() }).into());
        }
        // The wall clock stands in for the registry's time. No decision rests on it.
        let now = wall_clock::registry_now();
        let (last_heartbeat, ttl) = (now, record.session.ttl);
        let liveness =
            Liveness { pool: record.pool, last_heartbeat, ttl, expires: now + ttl, expires_in: ttl };
        Ok(HeartbeatOutcome::Renewed(liveness))
    }

    /// Finds a session with every event until now; `None` if no session of the caller has this id.
    async fn found(&self, id: SessionId, who: &Authority) -> Result<Option<FoundSession>, Error> {
        for kind in kinds(who) {
            self.on_record(*kind, id.bucket()).await?;
        }
        let found = self.ledger.find_session(id).await?;
        Ok(found.filter(|found| who.covers(&found.record.pool, &found.record.session)))
    }

    /// Returns the record of a session with every event until now; `None` if no session of the caller has
    /// this id.
    pub async fn record(&self, id: SessionId, who: &Authority) -> Result<Option<SessionRecord>, Error> {
        for kind in kinds(who) {
            self.on_record(*kind, id.bucket()).await?;
        }
        let record = self.ledger.session(id).await?;
        Ok(record.filter(|record| who.covers(&record.pool, &record.session)))
    }

    /// Returns the records of at most `max` live sessions of a pool, with every event until now.
    pub async fn live_records(&self, pool: &PoolId, max: usize) -> Result<Vec<SessionRecord>, Error> {
        self.on_record(pool.kind, pool.bucket()).await?;
        self.ledger.live_sessions_of(pool, max).await.map_err(Error::Ledger)
    }
}
