//! Sessions: see `lib/session.lua` for the body, which says what a heartbeat does not change.

use seatkeeper_core::{Holder, PoolId, RegistryTime, Session, SessionId, Span, Tier, Users};
use uuid::Uuid;

use super::bytes::{Garbled, Put as _, Reader, at_most};
use super::user::{user_of, user_text};
use crate::redis::scripts::START_FOLLOWS;

const ID_BYTES: usize = 16;

/// The body of a session; its start is left out where its id tells it.
pub(in crate::redis) fn body_of(pool: &PoolId, session: &Session) -> Vec<u8> {
    let users: Vec<_> = session.users.iter().collect();
    let start_follows = session.id.started() != session.started;
    let mut bytes = vec![session.tier.0, users.len() as u8 + if start_follows { START_FOLLOWS } else { 0 }];
    if start_follows {
        bytes.put_number(at_most(session.started.as_millis(), 6), 6);
    }
    bytes.put_part(session.holder.as_str().as_bytes());
    for user in users {
        bytes.put_part(user_text(pool, user).as_bytes());
    }
    bytes
}

/// A session that is put back: id, last heartbeat (6 bytes), TTL (5), body (after its length in 2).
pub(in crate::redis) fn known_session_bytes(pool: &PoolId, session: &Session) -> Vec<u8> {
    let mut bytes = session.id.as_uuid().as_bytes().to_vec();
    bytes.put_number(at_most(session.last_heartbeat.as_millis(), 6), 6);
    bytes.put_number(at_most(session.ttl.as_millis(), 5), 5);
    bytes.put_part(&body_of(pool, session));
    bytes
}

/// The sessions of a small pool, as they stand behind one another.
pub(in crate::redis) fn kept_sessions_of(
    pool: &PoolId,
    mut reader: Reader<'_>,
) -> Result<Vec<Session>, Garbled> {
    let mut sessions = Vec::new();
    while !reader.is_at_end() {
        let id = reader.take(ID_BYTES)?;
        let last_heartbeat = RegistryTime::from_millis(reader.number(6)?);
        let ttl = Span::from_millis(reader.number(5)?);
        sessions.push(session_of(pool, id, last_heartbeat, ttl, reader.part()?)?);
    }
    Ok(sessions)
}

pub(in crate::redis) fn session_of(
    pool: &PoolId,
    id: &[u8],
    last_heartbeat: RegistryTime,
    ttl: Span,
    body: &[u8],
) -> Result<Session, Garbled> {
    let id = id_of(id)?;
    let mut reader = Reader::new(body);
    let tier = Tier(reader.byte()?);
    let users = reader.byte()?;
    let started =
        if users >= START_FOLLOWS { RegistryTime::from_millis(reader.number(6)?) } else { id.started() };
    let holder = Holder::new(reader.text()?);
    let mut shared = Users::one(user_of(pool, &mut reader)?);
    while !reader.is_at_end() {
        shared.join(&user_of(pool, &mut reader)?);
    }
    Ok(Session { id, holder, users: shared, started, last_heartbeat, ttl, tier })
}

pub(in crate::redis) fn id_of(bytes: &[u8]) -> Result<SessionId, Garbled> {
    let uuid = Uuid::from_slice(bytes).map_err(|_| Garbled("a session's id"))?;
    SessionId::from_uuid(uuid).map_err(|_| Garbled("a session's id"))
}
