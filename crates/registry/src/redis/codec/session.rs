//! Sessions. The body, described in `lib/session.lua`, holds the fields that no heartbeat changes.

use seatkeeper_core::{Holder, PoolId, RegistryTime, Session, SessionId, Span, Tier, Users};
use uuid::Uuid;

use super::bytes::{Garbled, Put as _, Reader, at_most};
use super::user::{user_of, user_text};
use crate::redis::scripts::START_FOLLOWS;

const ID_BYTES: usize = 16;

/// Encodes the body of a session; the start is left out if the id encodes the start.
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

/// Encodes a session for a restore: id, last heartbeat (6 bytes), TTL (5), body (after its length in 2).
pub(in crate::redis) fn known_session_bytes(pool: &PoolId, session: &Session) -> Vec<u8> {
    let mut bytes = session.id.as_uuid().as_bytes().to_vec();
    bytes.put_number(at_most(session.last_heartbeat.as_millis(), 6), 6);
    bytes.put_number(at_most(session.ttl.as_millis(), 5), 5);
    bytes.put_part(&body_of(pool, session));
    bytes
}

/// A session of a small pool in its stored form, the encoding of [`known_session_bytes`].
pub(in crate::redis) struct KeptSession<'b> {
    /// The whole encoded session.
    pub(in crate::redis) bytes: &'b [u8],
    pub(in crate::redis) id: &'b [u8],
    pub(in crate::redis) last_heartbeat: RegistryTime,
    pub(in crate::redis) ttl: Span,
    pub(in crate::redis) body: &'b [u8],
}

impl<'b> KeptSession<'b> {
    /// Decodes the consecutive sessions of a small pool.
    pub(in crate::redis) fn all(mut reader: Reader<'b>) -> Result<Vec<Self>, Garbled> {
        let mut sessions = Vec::new();
        while !reader.is_at_end() {
            let from_here = reader.rest();
            let id = reader.take(ID_BYTES)?;
            let last_heartbeat = RegistryTime::from_millis(reader.number(6)?);
            let ttl = Span::from_millis(reader.number(5)?);
            let body = reader.part()?;
            let bytes = &from_here[..from_here.len() - reader.rest().len()];
            sessions.push(Self { bytes, id, last_heartbeat, ttl, body });
        }
        Ok(sessions)
    }
}

/// A decoded body.
pub(in crate::redis) struct Body<'b> {
    pub(in crate::redis) tier: u8,
    /// `None` if the id encodes the start.
    started: Option<RegistryTime>,
    pub(in crate::redis) holder: &'b [u8],
    users: Reader<'b>,
}

impl<'b> Body<'b> {
    pub(in crate::redis) fn decode(bytes: &'b [u8]) -> Result<Self, Garbled> {
        let mut reader = Reader::new(bytes);
        let (tier, users) = (reader.byte()?, reader.byte()?);
        let started = (users >= START_FOLLOWS).then(|| reader.number(6)).transpose()?;
        let started = started.map(RegistryTime::from_millis);
        Ok(Self { tier, started, holder: reader.part()?, users: reader })
    }
}

pub(in crate::redis) fn session_of(
    pool: &PoolId,
    id: &[u8],
    last_heartbeat: RegistryTime,
    ttl: Span,
    body: &[u8],
) -> Result<Session, Garbled> {
    let id = id_of(id)?;
    let Body { tier, started, holder, users: mut reader } = Body::decode(body)?;
    let mut users = Users::one(user_of(pool, &mut reader)?);
    while !reader.is_at_end() {
        users.join(&user_of(pool, &mut reader)?);
    }
    Ok(Session {
        id,
        holder: Holder::new(Reader::new(holder).rest_text()?),
        users,
        started: started.unwrap_or(id.started()),
        last_heartbeat,
        ttl,
        tier: Tier(tier),
    })
}

pub(in crate::redis) fn id_of(bytes: &[u8]) -> Result<SessionId, Garbled> {
    let uuid = Uuid::from_slice(bytes).map_err(|_| Garbled("a session's id"))?;
    SessionId::try_from(uuid).map_err(|_| Garbled("a session's id"))
}
