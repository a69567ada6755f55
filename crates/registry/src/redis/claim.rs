//! Claims, and the opening of pools.

use std::sync::Arc;

use async_trait::async_trait;
use seatkeeper_core::{
    Claim, PoolId, RegistryTime, Seats, Session, SessionId, Span, Terms, Users, WhenFull, WhenHeld, WhenNamed,
};

use super::RedisRegistry;
use super::call::Call;
use super::codec::{
    Garbled, body_of, denial_of, end_reason_of, id_of, origin_bytes, particulars_bytes, terms_bytes,
    user_text,
};
use super::head::Stage;
use super::keys::{holder_key, mark_key};
use super::pools::{in_order, with_what_is_known};
use super::reply::Reply;
use super::scripts::{ADMITTED, EXISTING, MAKING_ROOM, REFRESHED, RESUMED, SCRIPTS, reason_number};
use super::session_location::{LocationHint, SessionLocation};
use crate::Error;
use crate::contract::{Admission, Answer, Claimed, ClosedAt, Granted, Request};
use crate::open_pool::RECORD_AGE_MAX;

/// Bytes of the time in an id; half of the next byte belongs to the time as well.
const ID_TIME_BYTES: usize = 5;

/// Location hints for the sessions named by a claim.
struct LocationHints {
    session: LocationHint,
    replace: LocationHint,
}

#[async_trait]
impl Admission for RedisRegistry {
    async fn open(
        &self,
        pool: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        live: Vec<Session>,
    ) -> Result<(), Error> {
        self.open_since(None, pool, (seq, terms, live)).await
    }

    /// Returns an estimate of the time without a look at the pool: [`Admission::open`] does nothing to an open pool.
    async fn closed_at(&self, pool: &PoolId) -> Result<Option<ClosedAt>, Error> {
        let epoch = self.epochs.get(pool.bucket());
        Ok(Some(ClosedAt { time: self.approximate_time_of(pool.bucket()).await?, epoch }))
    }

    async fn open_if_recent(
        &self,
        closed_at: ClosedAt,
        pool: &PoolId,
        seq: u64,
        terms: Option<Terms>,
        live: Vec<Session>,
    ) -> Result<(), Error> {
        self.open_since(Some(closed_at), pool, (seq, terms, live)).await
    }

    async fn claim(&self, request: Request<'_>) -> Result<Claimed, Error> {
        let session = request.claim.session;
        let replace = request.claim.replace.map(|named| named.session);
        let known = |id: Option<SessionId>| id.map_or(LocationHint::Unknown, |id| self.hint_remembered(id));
        loop {
            self.room_in_journal(request.pool.bucket()).await?;
            let hints = LocationHints { session: known(session), replace: known(replace) };
            let reply = match self.call_for_session(self.claim_call(request, &hints)).await? {
                Some(reply) => reply,
                None => {
                    let hints = LocationHints {
                        session: self.hint_in_pool(request.pool, session).await?,
                        replace: self.hint_in_pool(request.pool, replace).await?,
                    };
                    self.call(self.claim_call(request, &hints)).await?
                }
            };
            let server = Arc::clone(&reply.connection);
            let Some(claimed) = self.claimed(request, reply)? else { continue };
            let wanted = self.settings.wait_replicas;
            if wanted > 0 && matches!(claimed.answer, Answer::Granted { .. }) {
                let mark = mark_key(request.pool.bucket());
                if !server.replicas().have_all(wanted, mark).await {
                    return Err(Error::TimedOut);
                }
            }
            return Ok(claimed);
        }
    }
}

impl RedisRegistry {
    /// Opens a pool by a record read after `closed_at`, if given.
    async fn open_since(
        &self,
        closed_at: Option<ClosedAt>,
        pool: &PoolId,
        (seq, terms, mut live): (u64, Option<Terms>, Vec<Session>),
    ) -> Result<(), Error> {
        in_order(&mut live);
        let call = with_what_is_known(self.on_pool(&SCRIPTS.open, pool), pool, seq, terms, &live);
        let call = match closed_at {
            Some(ClosedAt { time, epoch }) => {
                call.arg((time + RECORD_AGE_MAX).as_millis()).in_epoch(Stage::Serving, epoch)
            }
            None => call.arg(""),
        };
        let reply = self.call(call).await?;
        self.expect(reply.receipt);
        self.remember_all(pool, &live);
        Ok(())
    }

    fn claim_call(&self, request: Request<'_>, hints: &LocationHints) -> Call {
        let Request { pool, claim, policy, origin, particulars } = request;
        let when_named = match policy.when_named {
            WhenNamed::SameHolder => "h",
            WhenNamed::SameDevice => "d",
        };
        let when_full = match policy.when_full {
            WhenFull::Deny => "d",
            WhenFull::Evict => "e",
        };
        let when_held = match policy.when_held {
            WhenHeld::Resume => "r",
            WhenHeld::Supersede => "s",
            WhenHeld::Upgrade => "u",
        };
        let undated =
            SessionId::mint(RegistryTime::default(), pool.bucket(), self.settings.region, rand::random());
        self.on_pool_and_ring(&SCRIPTS.claim, pool)
            .arg(origin_bytes(origin))
            .arg(terms_bytes(policy.terms.as_ref()))
            .arg(policy.ttl_default.as_millis())
            .arg(when_named)
            .arg(when_full)
            .arg(when_held)
            .arg(claim.holder.as_str())
            .arg(&holder_key(&claim.holder))
            .arg(&*user_text(pool, &claim.user))
            .arg(claim.tier.0)
            .arg(id_bytes(&claim.session))
            .arg(hints.session.bytes())
            .arg(id_bytes(&claim.replace.map(|named| named.session)))
            .arg(hints.replace.bytes())
            .arg(&undated.as_uuid().as_bytes()[ID_TIME_BYTES..])
            .arg(fresh_body(pool, claim, undated))
            .arg(particulars_bytes(particulars))
            .arg(self.settings.journal_events_max)
            .arg(self.backlog.wants_events())
            .arg(claim.replace.map_or(0, |named| reason_number(named.reason())))
    }

    /// Reads the reply to a claim. Returns `None` for `MAKING_ROOM`: the caller repeats the claim.
    fn claimed(&self, request: Request<'_>, mut reply: Reply) -> Result<Option<Claimed>, Error> {
        let receipt = self.expect_events(&mut reply);
        let (live, limit) = (reply.values.number()? as u32, Seats(reply.values.number()? as u32));
        let answer = match reply.values.signed()? {
            MAKING_ROOM => return Ok(None),
            ADMITTED => self.granted(Granted::Admitted, request.pool, reply)?,
            REFRESHED => self.granted(Granted::Refreshed, request.pool, reply)?,
            RESUMED => self.granted(Granted::Resumed, request.pool, reply)?,
            EXISTING => self.granted(Granted::Existing, request.pool, reply)?,
            why => Answer::Denied(denial_of(why, reply.values.number()?)?),
        };
        Ok(Some(Claimed { answer, live, limit, receipt }))
    }

    fn granted(&self, how: Granted, pool: &PoolId, mut reply: Reply) -> Result<Answer, Garbled> {
        let live = reply.live(pool)?;
        let Session { id, ref holder, .. } = live.session;
        self.remembered.note(id, SessionLocation::new(pool.clone(), Some(holder)));
        self.heartbeat_buffer.note(live.session.latest_heartbeat());
        let (mut ended, mut values) = (Vec::new(), reply.values);
        while !values.is_at_end() {
            let id = id_of(&values.bytes()?)?;
            self.heartbeat_buffer.forget(id);
            ended.push((id, end_reason_of(values.signed()?)?));
        }
        Ok(Answer::Granted { how, session: Box::new(live), ended })
    }

    /// Returns a session's location hint in a large pool, and searches the pool if necessary.
    async fn hint_in_pool(&self, pool: &PoolId, id: Option<SessionId>) -> Result<LocationHint, Error> {
        let Some(id) = id else { return Ok(LocationHint::Unknown) };
        match self.hint_remembered(id) {
            LocationHint::Unknown => self.search_large(pool, id).await,
            known @ (LocationHint::Is(_) | LocationHint::NotThere) => Ok(known),
        }
    }

    fn hint_remembered(&self, id: SessionId) -> LocationHint {
        self.remembered.get(id).map_or(LocationHint::Unknown, |location| location.hint)
    }
}

fn id_bytes(id: &Option<SessionId>) -> &[u8] {
    id.as_ref().map_or(&[], |id| id.as_bytes())
}

/// Encodes the body of the session that a claim may start. The script writes the start into the session's id.
fn fresh_body(pool: &PoolId, claim: &Claim, undated: SessionId) -> Vec<u8> {
    let session = Session {
        id: undated,
        holder: claim.holder.clone(),
        users: Users::one(claim.user.clone()),
        started: RegistryTime::default(),
        last_heartbeat: RegistryTime::default(),
        ttl: Span::ZERO,
        tier: claim.tier,
    };
    body_of(pool, &session)
}

#[cfg(test)]
mod tests;
