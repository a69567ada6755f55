//! Steps on a whole pool.

use async_trait::async_trait;
use seatkeeper_core::{EndReason, Origin, PoolId, Session, Terms};

use super::RedisRegistry;
use super::call::Call;
use super::codec::{known_session_bytes, origin_bytes, pool_id_bytes, terms_bytes, terms_of};
use super::scripts::{SCRIPTS, reason_number};
use super::session_location::SessionLocation;
use crate::Error;
use crate::contract::{EndedAll, PoolView, Pools};

#[async_trait]
impl Pools for RedisRegistry {
    async fn end_all(&self, pool: &PoolId, reason: EndReason, origin: &Origin) -> Result<EndedAll, Error> {
        self.end_sessions(pool, Some(reason), None, origin).await
    }

    async fn revise(&self, pool: &PoolId, terms: Terms, origin: &Origin) -> Result<EndedAll, Error> {
        self.end_sessions(pool, None, Some(terms), origin).await
    }

    async fn view(&self, pool: &PoolId, max: usize) -> Result<PoolView, Error> {
        let max = u32::try_from(max).unwrap_or(u32::MAX);
        let mut reply = self.call(self.on_pool(&SCRIPTS.view, pool).arg(max)).await?;
        self.expect(reply.receipt);
        let (live, terms) = (reply.values.number()? as u32, terms_of(&reply.values.bytes()?)?);
        let mut sessions = Vec::new();
        while !reply.values.is_at_end() {
            sessions.push(reply.live(pool)?);
        }
        sessions.sort_unstable_by_key(|live| live.session.rank());
        Ok(PoolView { live, terms, sessions })
    }
}

impl RedisRegistry {
    /// Ends every session for a reason, or offers terms to the pool. A large pool takes several atomic steps.
    async fn end_sessions(
        &self,
        pool: &PoolId,
        reason: Option<EndReason>,
        terms: Option<Terms>,
        origin: &Origin,
    ) -> Result<EndedAll, Error> {
        let mut count = 0;
        loop {
            let call = self.on_pool(&SCRIPTS.end_all, pool).arg(origin_bytes(origin));
            let call = match reason {
                Some(reason) => call.arg(reason_number(reason)),
                None => call.arg(""),
            };
            let mut reply = self.call(call.arg(terms_bytes(terms.as_ref()))).await?;
            count += reply.values.number()? as usize;
            if reply.values.number()? == 0 {
                return Ok(EndedAll { count, receipt: self.expect(reply.receipt) });
            }
        }
    }

    /// Caches the locations of restored sessions.
    pub(super) fn remember_all(&self, pool: &PoolId, live: &[Session]) {
        for session in live {
            self.remembered.note(session.id, SessionLocation::new(pool.clone(), Some(&session.holder)));
        }
    }
}

/// Sorts sessions for a restore. If two belong to one holder, the first stays.
pub(super) fn in_order(live: &mut [Session]) {
    live.sort_unstable_by_key(|session| (session.started, session.id));
}

/// Appends the arguments of the scripts that open a pool.
pub(super) fn with_what_is_known(
    call: Call,
    pool: &PoolId,
    seq: u64,
    terms: Option<Terms>,
    live: &[Session],
) -> Call {
    let sessions: Vec<u8> = live.iter().flat_map(|session| known_session_bytes(pool, session)).collect();
    call.arg(pool_id_bytes(pool))
        .arg(seq)
        .arg(terms_bytes(terms.as_ref()))
        .arg(u8::from(pool.kind.has_heartbeats()))
        .arg(sessions)
}
