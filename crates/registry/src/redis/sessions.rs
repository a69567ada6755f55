//! Steps on one session.

use async_trait::async_trait;
use seatkeeper_core::{
    Authority, Bucket, EndReason, LatestHeartbeat, Origin, PoolId, Reach, RegistryTime, SessionId, Span,
};
use seatkeeper_redis::Script;

use super::RedisRegistry;
use super::call::Call;
use super::codec::{Garbled, end_reason_of, origin_bytes, user_text};
use super::find::Search;
use super::reply::Reply;
use super::scripts::{GONE, LEFT, LIVE, MISSING, SCRIPTS, reason_number};
use super::session_location::{LocationHint, SessionLocation};
use crate::Error;
use crate::contract::{Ended, Heartbeat, Live, Liveness, Sessions};

#[async_trait]
impl Sessions for RedisRegistry {
    async fn heartbeat(&self, id: SessionId, who: &Authority, _origin: &Origin) -> Result<Heartbeat, Error> {
        match self.find(id, who).await? {
            Search::Found(location) => self.renew_at(location, id, who).await,
            Search::NeverWas => Ok(Heartbeat::NeverWas),
            Search::Missed => Ok(Heartbeat::Missing),
        }
    }

    async fn heartbeat_remembered(
        &self,
        id: SessionId,
        who: &Authority,
        _origin: &Origin,
    ) -> Result<Option<Heartbeat>, Error> {
        match self.remembered.get(id) {
            Some(location) => self.renew_at(location, id, who).await.map(Some),
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
        let add = |pool: &PoolId, call: Call| {
            let leaver = match (reason, &who.reach) {
                (EndReason::Released, Reach::Own(user)) => user_text(pool, user),
                _ => "".into(),
            };
            let call = call.arg(origin_bytes(origin)).arg(reason_number(reason)).arg(&*leaver);
            call.arg(self.backlog.wants_events())
        };
        let Search::Found(location) = self.find(id, who).await? else { return Ok(Ended::Missing) };
        let asked = self.call_on_session(&SCRIPTS.end, location, id, who, add).await?;
        let Some((_, mut reply)) = asked else { return Ok(Ended::Missing) };
        match reply.values.signed()? {
            GONE => {
                self.heartbeat_buffer.forget(id);
                let reason = end_reason_of(reply.values.signed()?)?;
                Ok(Ended::Now { reason, receipt: self.expect_events(&mut reply) })
            }
            LEFT => Ok(Ended::Left),
            // The first sending of this call may have ended the session.
            MISSING if reply.is_repeated => Err(Error::TimedOut),
            MISSING => Ok(Ended::Missing),
            _ => Err(Garbled("what the end of a session found").into()),
        }
    }

    async fn session(&self, id: SessionId, who: &Authority) -> Result<Option<Live>, Error> {
        let Search::Found(location) = self.find(id, who).await? else { return Ok(None) };
        let asked = self.call_on_session(&SCRIPTS.session, location, id, who, |_, call| call).await?;
        let Some((pool, mut reply)) = asked else { return Ok(None) };
        self.expect(reply.receipt);
        match reply.values.signed()? {
            LIVE => Ok(Some(reply.live(&pool)?)),
            MISSING => Ok(None),
            _ => Err(Garbled("what a look at a session found").into()),
        }
    }

    async fn renewed_since(
        &self,
        bucket: Bucket,
        since: RegistryTime,
    ) -> Result<Vec<LatestHeartbeat>, Error> {
        Ok(self.heartbeat_buffer.since(bucket, since))
    }
}

impl RedisRegistry {
    /// Renews a session in its known pool.
    async fn renew_at(
        &self,
        location: SessionLocation,
        id: SessionId,
        who: &Authority,
    ) -> Result<Heartbeat, Error> {
        let add = |pool: &PoolId, call: Call| call.arg(u8::from(pool.kind.tells_interval()));
        let was_guess = location.is_guess();
        let asked = self.call_on_session(&SCRIPTS.heartbeat, location, id, who, add).await?;
        let Some((pool, mut reply)) = asked else { return Ok(Heartbeat::Missing) };
        match reply.values.signed()? {
            LIVE => {
                let last_heartbeat = reply.values.time()?;
                let ttl = Span::from_millis(reply.values.number()?);
                let expires = reply.values.time()?;
                self.heartbeat_buffer.note(LatestHeartbeat { session: id, at: last_heartbeat, ttl });
                if was_guess && self.remembered.get(id).is_none() {
                    self.remembered.note(id, SessionLocation::new(pool.clone(), None));
                }
                let expires_in = expires.since(reply.now);
                Ok(Heartbeat::Renewed(Liveness { pool, last_heartbeat, ttl, expires, expires_in }))
            }
            GONE => {
                self.heartbeat_buffer.forget(id);
                let last_heartbeat = RegistryTime::from_millis(reply.values.number()?);
                Ok(Heartbeat::Over { last_heartbeat, receipt: self.expect(reply.receipt) })
            }
            MISSING => Ok(Heartbeat::Missing),
            _ => Err(Garbled("what a heartbeat found").into()),
        }
    }

    /// Calls a script on a session in its known pool. Returns `None` if the session is out of the caller's
    /// reach. The reply begins with [`LIVE`], [`GONE`], [`LEFT`] or [`MISSING`].
    async fn call_on_session(
        &self,
        script: &'static Script,
        SessionLocation { pool, hint }: SessionLocation,
        id: SessionId,
        who: &Authority,
        add: impl Fn(&PoolId, Call) -> Call,
    ) -> Result<Option<(PoolId, Reply)>, Error> {
        let Some(reach) = reach_into(&pool, who) else { return Ok(None) };
        let call = |hint: &LocationHint| {
            let call = self.on_pool(script, &pool).arg(id.as_bytes()).arg(hint.bytes()).arg(&reach);
            add(&pool, call)
        };
        let reply = match self.call_for_session(call(&hint)).await? {
            Some(reply) => reply,
            None => {
                let hint = Box::pin(self.search_large(&pool, id)).await?;
                // A pool without the session may have it after a rebuild.
                if matches!(hint, LocationHint::Is(_)) {
                    self.remembered.note(id, SessionLocation { pool: pool.clone(), hint });
                }
                self.call(call(&hint)).await?
            }
        };
        Ok(Some((pool, reply)))
    }
}

/// Encodes the sessions of a pool that the caller may touch, all or one user's, for the scripts. Returns
/// `None` if the caller may touch no session.
fn reach_into(pool: &PoolId, who: &Authority) -> Option<String> {
    if who.kind.is_some_and(|kind| kind != pool.kind) {
        return None;
    }
    if who.tenant != pool.tenant {
        return who.abroad.as_ref().map(|user| format!("u{}", user_text(pool, user)));
    }
    Some(match &who.reach {
        Reach::Own(user) => format!("u{}", user_text(pool, user)),
        Reach::Tenant => "a".to_owned(),
    })
}
