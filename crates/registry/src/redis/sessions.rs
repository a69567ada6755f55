//! What happens to one session.

use seatkeeper_core::{Authority, EndReason, Origin, PoolId, Reach, RegistryTime, SessionId};
use seatkeeper_redis::Script;

use super::RedisRegistry;
use super::call::{Answered, Asked, Call};
use super::codec::{Garbled, end_reason_of, origin_bytes, user_text};
use super::find::Search;
use super::reply::{Preamble, Reply};
use super::scripts::{GONE, LEFT, LIVE, MISSING, SCRIPTS, reason_number};
use super::whereabouts::{Clue, Whereabouts};
use crate::Error;
use crate::contract::{Ended, Heartbeat, Live};

/// What a script found of a session.
struct Met {
    pool: PoolId,
    preamble: Preamble,
    /// One of [`LIVE`], [`GONE`], [`LEFT`], [`MISSING`].
    what: i64,
    reply: Reply,
    /// The script may have been run before.
    is_repeated: bool,
}

impl RedisRegistry {
    pub(super) async fn renew_session(&self, id: SessionId, who: &Authority) -> Result<Heartbeat, Error> {
        match self.find(id, who).await? {
            Search::Found(whereabouts) => self.renew_at(whereabouts, id, who).await,
            Search::NeverWas => Ok(Heartbeat::NeverWas),
            Search::Missed => Ok(Heartbeat::Missing),
        }
    }

    /// Renews a session in its known pool.
    pub(super) async fn renew_at(
        &self,
        whereabouts: Whereabouts,
        id: SessionId,
        who: &Authority,
    ) -> Result<Heartbeat, Error> {
        let met = self.meet_at(&SCRIPTS.heartbeat, whereabouts, id, who, |_, call| call).await?;
        let Some(Met { pool, preamble, what, mut reply, .. }) = met else { return Ok(Heartbeat::Missing) };
        match what {
            LIVE => {
                let live = reply.live(&pool, preamble.now)?;
                self.renewals.note(id, live.session.last_heartbeat);
                Ok(Heartbeat::Renewed(Box::new(live)))
            }
            GONE => {
                self.renewals.forget(id);
                let last_heartbeat = RegistryTime::from_millis(reply.number()?);
                Ok(Heartbeat::Over { last_heartbeat, receipt: self.expected(preamble, id.bucket()) })
            }
            MISSING => Ok(Heartbeat::Missing),
            _ => Err(Garbled("what a heartbeat found").into()),
        }
    }

    pub(super) async fn end_session(
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
            call.arg(origin_bytes(origin)).arg(reason_number(reason)).arg(&*leaver)
        };
        let met = self.meet(&SCRIPTS.end, id, who, add).await?;
        let Some(Met { preamble, what, mut reply, is_repeated, .. }) = met else {
            return Ok(Ended::Missing);
        };
        match what {
            GONE => {
                self.renewals.forget(id);
                let reason = end_reason_of(reply.signed()?)?;
                let receipt = self.expected_with(preamble, id.bucket(), reply.array()?)?;
                Ok(Ended::Now { reason, receipt })
            }
            LEFT => Ok(Ended::Left),
            // By this very call, perhaps.
            MISSING if is_repeated => Err(Error::TimedOut),
            MISSING => Ok(Ended::Missing),
            _ => Err(Garbled("what the end of a session found").into()),
        }
    }

    pub(super) async fn show_session(&self, id: SessionId, who: &Authority) -> Result<Option<Live>, Error> {
        let met = self.meet(&SCRIPTS.session, id, who, |_, call| call).await?;
        let Some(Met { pool, preamble, what, mut reply, .. }) = met else { return Ok(None) };
        self.expected(preamble, id.bucket());
        match what {
            LIVE => Ok(Some(reply.live(&pool, preamble.now)?)),
            MISSING => Ok(None),
            _ => Err(Garbled("what a look at a session found").into()),
        }
    }

    /// Finds a session and calls a script on the session; `None` if the session is missing or out of the caller's reach.
    async fn meet(
        &self,
        script: &'static Script,
        id: SessionId,
        who: &Authority,
        add: impl Fn(&PoolId, Call) -> Call,
    ) -> Result<Option<Met>, Error> {
        match self.find(id, who).await? {
            Search::Found(whereabouts) => self.meet_at(script, whereabouts, id, who, add).await,
            Search::NeverWas | Search::Missed => Ok(None),
        }
    }

    /// Calls a script on a session in its known pool; `None` if the session is out of the caller's reach.
    async fn meet_at(
        &self,
        script: &'static Script,
        Whereabouts { pool, mut clue }: Whereabouts,
        id: SessionId,
        who: &Authority,
        add: impl Fn(&PoolId, Call) -> Call,
    ) -> Result<Option<Met>, Error> {
        let Some(reach) = reach_into(&pool, who) else { return Ok(None) };
        let call = |clue: &Clue| {
            let call = self.on_pool(script, &pool).arg(id.as_bytes()).arg(clue.bytes()).arg(&reach);
            add(&pool, call)
        };
        let mut asked = self.ask_whom(call(&clue)).await?;
        if matches!(asked.answered, Answered::KeyNeeded) {
            clue = Box::pin(self.search_large(&pool, id)).await?;
            self.remembered.note(id, Whereabouts { pool: pool.clone(), clue });
            asked = self.ask_whom(call(&clue)).await?;
        }
        let Asked { answered, is_repeated, .. } = asked;
        let (preamble, mut reply) = answered.told()?;
        let what = reply.signed()?;
        Ok(Some(Met { pool, preamble, what, reply, is_repeated }))
    }
}

/// Whose sessions of a pool the caller may touch, in the scripts' words: all, or one user's; none if none of them.
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
