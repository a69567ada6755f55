//! What happens to a pool.

use seatkeeper_core::{EndReason, Origin, PoolId, Session, Terms};

use super::RedisRegistry;
use super::call::Call;
use super::codec::{known_session_bytes, origin_bytes, pool_id_bytes, terms_bytes, terms_of};
use super::scripts::{SCRIPTS, reason_number};
use super::whereabouts::Whereabouts;
use crate::Error;
use crate::contract::{EndedAll, PoolView};

impl RedisRegistry {
    pub(super) async fn open_pool(
        &self,
        pool: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        mut live: Vec<Session>,
    ) -> Result<(), Error> {
        in_order(&mut live);
        let call = self.on_pool(&SCRIPTS.open, pool);
        let (preamble, _) = self.told(with_what_is_known(call, pool, seq, terms, &live)).await?;
        self.expected(preamble, pool.bucket());
        self.remember_all(pool, &live);
        Ok(())
    }

    /// Ends every session for a reason, or lets the pool learn terms. A large pool takes several steps; each is
    /// atomic.
    pub(super) async fn end_sessions(
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
            let (preamble, mut reply) = self.told(call.arg(terms_bytes(terms.as_ref()))).await?;
            count += reply.number()? as usize;
            if reply.number()? == 0 {
                return Ok(EndedAll { count, receipt: self.expected(preamble, pool.bucket()) });
            }
        }
    }

    pub(super) async fn view_pool(&self, pool: &PoolId, max: usize) -> Result<PoolView, Error> {
        let max = u32::try_from(max).unwrap_or(u32::MAX);
        let (preamble, mut reply) = self.told(self.on_pool(&SCRIPTS.view, pool).arg(max)).await?;
        self.expected(preamble, pool.bucket());
        let (live, terms) = (reply.number()? as u32, terms_of(&reply.bytes()?)?);
        let mut sessions = Vec::new();
        while !reply.is_at_end() {
            sessions.push(reply.live(pool, preamble.now)?);
        }
        Ok(PoolView { live, terms, sessions })
    }

    /// Remembers where sessions are that were put back.
    pub(super) fn remember_all(&self, pool: &PoolId, live: &[Session]) {
        for session in live {
            self.remembered.note(session.id, Whereabouts::of(pool.clone(), Some(&session.holder)));
        }
    }
}

/// The order in which sessions are put back: should two be one holder's, the first stays.
pub(super) fn in_order(live: &mut [Session]) {
    live.sort_unstable_by_key(|session| (session.started, session.id));
}

/// What the scripts that open a pool are told of it.
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
