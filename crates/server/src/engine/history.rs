//! Sessions that are no longer live: the ledger tells of them.

use seatkeeper_core::{Authority, EndReason, PoolId, RegistryTime, SessionId};
use seatkeeper_ledger::SessionRecord;

use super::Engine;
use crate::error::Error;

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Past {
    pub(crate) reason: EndReason,
    pub(crate) last_heartbeat: RegistryTime,
}

impl Past {
    pub(super) fn expired(last_heartbeat: RegistryTime) -> Self {
        Self { reason: EndReason::Expired, last_heartbeat }
    }
}

impl Engine {
    /// How a session that is not live ended; none if it never was, or is not the caller's.
    pub(super) async fn past(&self, id: SessionId, who: &Authority) -> Result<Option<Past>, Error> {
        let record = self.record(id, who).await?;
        Ok(record.and_then(|record| {
            let reason = record.ended?.reason;
            Some(Past { reason, last_heartbeat: record.session.last_heartbeat })
        }))
    }

    /// What the ledger knows of a session, all that happened to it until now included; none if it never
    /// was, or is not the caller's.
    pub(crate) async fn record(
        &self,
        id: SessionId,
        who: &Authority,
    ) -> Result<Option<SessionRecord>, Error> {
        self.on_record(id.bucket()).await?;
        let record = self.ledger.session(id).await.map_err(Error::Ledger)?;
        Ok(record.filter(|record| who.covers(&record.pool, &record.session)))
    }

    /// What the ledger knows of a pool's live sessions, at most `max` of them, all that happened in it until
    /// now included.
    pub(crate) async fn live_records(&self, pool: &PoolId, max: usize) -> Result<Vec<SessionRecord>, Error> {
        self.on_record(pool.bucket()).await?;
        self.ledger.live_sessions_of(pool, max).await.map_err(Error::Ledger)
    }
}
