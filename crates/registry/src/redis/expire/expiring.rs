//! The computed expiry of a small pool. The result is byte for byte the result of `sweep.lua`; a test
//! compares both.

use seatkeeper_core::{EndReason, RegistryTime, Seats, Standing, Terms};

use crate::open_pool::EMPTY_KEPT;
use crate::redis::codec::{Body, Garbled, KeptHead, KeptSession, Put as _, terms_of};
use crate::redis::scripts::{ENDED, HAS_DENIALS, IS_EMPTY, IS_LARGE, NEVER_MILLIS, reason_number};

const VERSION_BYTES: usize = 8;

/// A small pool with sessions that are over, and no other work due.
pub(super) struct Expiring {
    /// The new value before the position of the last event.
    pub(super) before: Vec<u8>,
    /// The new value after the position of the last event.
    pub(super) behind: Vec<u8>,
    /// The pool's next due time.
    pub(super) due: RegistryTime,
    /// The encoded end events, in order.
    pub(super) events: Vec<Vec<u8>>,
}

/// A small pool at a time, divided into sessions that are over and sessions that stay.
struct Pool<'b> {
    head: KeptHead<'b>,
    terms: Option<Terms>,
    over: Vec<KeptSession<'b>>,
    left: Vec<KeptSession<'b>>,
    now: RegistryTime,
}

impl Expiring {
    /// Computes the expiry as of `now` from a stored pool. Returns `None` if no session is over, or if the
    /// pool needs a sweep in Redis: a large, empty or closed pool, or a pool with counted denials.
    pub(super) fn from_kept(kept: &[u8], now: RegistryTime) -> Result<Option<Self>, Garbled> {
        let head = KeptHead::decode(kept)?;
        let terms = terms_of(head.terms)?;
        let is_closed = terms.is_some_and(|terms| terms.standing == Standing::Closed);
        if head.flags & (IS_LARGE | HAS_DENIALS | IS_EMPTY) != 0 || is_closed {
            return Ok(None);
        }
        let (over, left): (Vec<_>, Vec<_>) =
            KeptSession::all(head.rest)?.into_iter().partition(|session| expiry(session, terms) <= now);
        if over.is_empty() {
            return Ok(None);
        }
        let pool = Pool { head, terms, over, left, now };
        let (before, behind) = pool.becomes();
        Ok(Some(Self { before, behind, due: pool.due_next(), events: pool.ends()? }))
    }
}

impl Pool<'_> {
    /// Encodes the end events as `lib/record.lua` does.
    fn ends(&self) -> Result<Vec<Vec<u8>>, Garbled> {
        let Self { head, terms, over, left, now } = self;
        let limit = terms.map_or(Seats(1), |terms| terms.limit);
        let mut ends = Vec::with_capacity(over.len());
        for (session, number) in over.iter().zip(1..) {
            let Body { tier, holder, .. } = Body::decode(session.body)?;
            let mut end = vec![ENDED as u8];
            end.put_number(head.seq + number, 6);
            end.put_number(now.as_millis(), 6);
            end.put_number((over.len() + left.len()) as u64 - number, 4);
            end.put_number(u64::from(limit.0), 4);
            end.extend_from_slice(head.terms.get(..VERSION_BYTES).unwrap_or(&[0; VERSION_BYTES]));
            end.put_part(head.id);
            // An expiry has no origin.
            end.put_part(&[]);
            end.extend_from_slice(session.id);
            end.push(reason_number(EndReason::Expired) as u8);
            end.put_number(session.last_heartbeat.as_millis(), 6);
            end.put_number(expiry(session, *terms).as_millis(), 6);
            end.push(tier);
            end.extend_from_slice(holder);
            ends.push(end);
        }
        Ok(ends)
    }

    /// Encodes the pool without the ended sessions as `lib/pool.lua` does: the bytes before and after the
    /// position of the last event.
    fn becomes(&self) -> (Vec<u8>, Vec<u8>) {
        let Self { head, over, left, now, .. } = self;
        let mut before = vec![head.flags | if left.is_empty() { IS_EMPTY } else { 0 }];
        before.put_number(head.seq + over.len() as u64, 6);
        let mut behind = Vec::new();
        if left.is_empty() {
            behind.put_number(now.as_millis(), 6);
        }
        behind.put_part(head.id);
        behind.extend_from_slice(head.terms);
        left.iter().for_each(|session| behind.extend_from_slice(session.bytes));
        (before, behind)
    }

    /// Returns the pool's next due time as `lib/due.lua` does.
    fn due_next(&self) -> RegistryTime {
        let Self { terms, left, now, .. } = self;
        let renewed = terms.map(|terms| *now + terms.ttl);
        let expiries = left.iter().map(|session| expiry(session, *terms));
        let due = if left.is_empty() { None } else { expiries.chain(renewed).min() };
        due.unwrap_or(*now + EMPTY_KEPT)
    }
}

/// Returns the time at which a session is over unless renewed.
fn expiry(session: &KeptSession<'_>, terms: Option<Terms>) -> RegistryTime {
    let never = RegistryTime::from_millis(NEVER_MILLIS);
    let ends_at = terms.and_then(|terms| terms.ends_at).unwrap_or(never);
    (session.last_heartbeat + session.ttl).min(ends_at)
}
