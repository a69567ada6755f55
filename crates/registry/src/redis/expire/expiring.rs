//! What time ends in a small pool: found from the pool as it is kept, so that Redis has only to compare and to write.
//! What comes of it is what `sweep.lua` would have done.

use seatkeeper_core::{EndReason, RegistryTime, Seats, Standing};

use crate::open_pool::EMPTY_KEPT;
use crate::redis::codec::{Garbled, KeptHead, Put as _, Reader, terms_of};
use crate::redis::scripts::{
    ENDED, HAS_DENIALS, IS_EMPTY, IS_LARGE, NEVER_MILLIS, START_FOLLOWS, reason_number,
};

const VERSION_BYTES: usize = 8;

/// A small pool of which some sessions are over, and nothing else is due.
pub(super) struct Expiring {
    /// What it becomes: what stands before the place of its last event.
    pub(super) before: Vec<u8>,
    /// And behind it.
    pub(super) behind: Vec<u8>,
    /// When it is due next.
    pub(super) due: RegistryTime,
    /// The ends, in order: see `lib/record.lua`.
    pub(super) events: Vec<Vec<u8>>,
}

/// A session as it is kept.
struct Kept<'b> {
    bytes: &'b [u8],
    id: &'b [u8],
    heartbeat: u64,
    expires: u64,
    tier: u8,
    holder: &'b [u8],
}

impl Expiring {
    /// What is over by `now` in a pool that was kept so then; none if a step must look at it in Redis: because nothing is
    /// over, or for what else may be due in it.
    pub(super) fn of(kept: &[u8], now: RegistryTime) -> Result<Option<Self>, Garbled> {
        let head = KeptHead::of(kept)?;
        let terms = terms_of(head.terms)?;
        let is_closed = terms.is_some_and(|terms| terms.standing == Standing::Closed);
        if head.flags & (IS_LARGE | HAS_DENIALS | IS_EMPTY) != 0 || is_closed {
            return Ok(None);
        }
        let ends_at = terms.and_then(|terms| terms.ends_at).map_or(NEVER_MILLIS, RegistryTime::as_millis);
        let sessions = sessions_of(head.rest, ends_at)?;
        let (over, left): (Vec<_>, Vec<_>) =
            sessions.into_iter().partition(|session| session.expires <= now.as_millis());
        if over.is_empty() {
            return Ok(None);
        }

        let limit = terms.map_or(Seats(1), |terms| terms.limit);
        let mut events = Vec::with_capacity(over.len());
        for (session, number) in over.iter().zip(1..) {
            let mut event = vec![ENDED as u8];
            event.put_number(head.seq + number, 6);
            event.put_number(now.as_millis(), 6);
            event.put_number((over.len() + left.len()) as u64 - number, 4);
            event.put_number(u64::from(limit.0), 4);
            event.extend_from_slice(head.terms.get(..VERSION_BYTES).unwrap_or(&[0; VERSION_BYTES]));
            event.put_part(head.id);
            // Nobody caused it.
            event.put_part(&[]);
            event.extend_from_slice(session.id);
            event.push(reason_number(EndReason::Expired) as u8);
            event.put_number(session.heartbeat, 6);
            event.put_number(session.expires, 6);
            event.push(session.tier);
            event.extend_from_slice(session.holder);
            events.push(event);
        }

        let mut before = vec![head.flags | if left.is_empty() { IS_EMPTY } else { 0 }];
        before.put_number(head.seq + over.len() as u64, 6);
        let mut behind = Vec::with_capacity(kept.len());
        if left.is_empty() {
            behind.put_number(now.as_millis(), 6);
        }
        behind.put_part(head.id);
        behind.extend_from_slice(head.terms);
        left.iter().for_each(|session| behind.extend_from_slice(session.bytes));

        let expiries = left.iter().map(|session| RegistryTime::from_millis(session.expires));
        let renewed = terms.map(|terms| now + terms.ttl);
        let due = if left.is_empty() { None } else { expiries.chain(renewed).min() };
        let due = due.unwrap_or(now + EMPTY_KEPT);
        Ok(Some(Self { before, behind, due, events }))
    }
}

/// The sessions of a small pool.
fn sessions_of(mut rest: Reader<'_>, ends_at: u64) -> Result<Vec<Kept<'_>>, Garbled> {
    let mut sessions = Vec::new();
    while !rest.is_at_end() {
        let all = rest.rest();
        let (id, heartbeat, ttl) = (rest.take(16)?, rest.number(6)?, rest.number(5)?);
        let mut body = Reader::new(rest.part()?);
        let (tier, users) = (body.byte()?, body.byte()?);
        if users >= START_FOLLOWS {
            body.take(6)?;
        }
        let expires = (heartbeat + ttl).min(ends_at);
        let bytes = &all[..all.len() - rest.rest().len()];
        sessions.push(Kept { bytes, id, heartbeat, expires, tier, holder: body.part()? });
    }
    Ok(sessions)
}
