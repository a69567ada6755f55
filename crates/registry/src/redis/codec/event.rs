//! Events: see `lib/record.lua`.

use arcstr::ArcStr;
use std::net::IpAddr;

use seatkeeper_core::{
    Actor, Change, Denial, Denied, Device, EndReason, Event, Holder, Origin, Particulars, PoolId,
    RegistryTime, RequestId, Seats, Span, Tier, UserId,
};

use super::bytes::{Garbled, Put as _, Reader};
use super::pool_id::pool_id_of;
use super::session::{id_of, session_of};
use crate::redis::scripts::{self, NEVER_MILLIS};

/// Encodes an origin: nothing for the system's own work, otherwise 1 for a user or 2 for an admin (0 for the
/// system with a request), the name, and the request if any.
pub(in crate::redis) fn origin_bytes(origin: &Origin) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (kind, name) = match &origin.actor {
        Actor::System if origin.request.is_none() => return bytes,
        Actor::System => (0, ""),
        Actor::User(user) => (1, user.as_str()),
        Actor::Admin(user) => (2, user.as_str()),
    };
    bytes.push(kind);
    bytes.put_part(name.as_bytes());
    if let Some(request) = &origin.request {
        bytes.extend_from_slice(request.as_str().as_bytes());
    }
    bytes
}

fn origin_of(bytes: &[u8]) -> Result<Origin, Garbled> {
    let mut reader = Reader::new(bytes);
    if reader.is_at_end() {
        return Ok(Origin::SYSTEM);
    }
    let (kind, name) = (reader.byte()?, UserId::new(reader.text()?));
    let actor = match kind {
        0 => Actor::System,
        1 => Actor::User(name),
        2 => Actor::Admin(name),
        _ => return Err(Garbled("an actor")),
    };
    let request = (!reader.is_at_end()).then(|| reader.rest_text().map(RequestId::new)).transpose()?;
    Ok(Origin { actor, request })
}

/// Encodes a client's particulars: address (after its length) and optional texts.
pub(in crate::redis) fn particulars_bytes(particulars: &Particulars) -> Vec<u8> {
    let mut bytes = Vec::new();
    match particulars.ip {
        None => bytes.put_part(&[]),
        Some(IpAddr::V4(ip)) => bytes.put_part(&ip.octets()),
        Some(IpAddr::V6(ip)) => bytes.put_part(&ip.octets()),
    }
    let device = particulars.device.as_ref();
    let texts = [
        particulars.user_agent.as_deref(),
        particulars.metadata.as_deref(),
        device.map(|device| &*device.kind),
        device.and_then(|device| device.name.as_deref()),
    ];
    for text in texts {
        bytes.push(u8::from(text.is_some()));
        bytes.put_part(text.unwrap_or_default().as_bytes());
    }
    bytes
}

fn particulars_of(bytes: &[u8]) -> Result<Particulars, Garbled> {
    let mut reader = Reader::new(bytes);
    let ip = match reader.part()? {
        [] => None,
        &[a, b, c, d] => Some(IpAddr::from([a, b, c, d])),
        octets => Some(IpAddr::from(<[u8; 16]>::try_from(octets).map_err(|_| Garbled("an address"))?)),
    };
    let mut next = || -> Result<Option<Box<str>>, Garbled> {
        let is_there = reader.byte()? == 1;
        let text = reader.text()?;
        Ok(is_there.then(|| Box::from(&*text)))
    };
    let (user_agent, metadata, kind, name) = (next()?, next()?, next()?, next()?);
    Ok(Particulars { ip, user_agent, metadata, device: kind.map(|kind| Device { kind, name }) })
}

pub(in crate::redis) fn event_of(bytes: &[u8], epoch: u64) -> Result<Event, Garbled> {
    let mut reader = Reader::new(bytes);
    let kind = i64::from(reader.byte()?);
    let (seq, at) = (reader.number(6)?, time(&mut reader)?);
    let (live, limit, version) = (reader.u32()?, Seats(reader.u32()?), reader.number(8)?);
    let (pool, origin) = (pool_id_of(reader.part()?)?, origin_of(reader.part()?)?);
    let change = match kind {
        scripts::BEGAN => admitted_of(&pool, reader, at)?,
        scripts::ENDED => ended_of(reader)?,
        scripts::DENIED => Change::Denied(denied_of(reader)?),
        _ => return Err(Garbled("a kind of event")),
    };
    Ok(Event { pool, seq, epoch, at, live, limit, version, origin, change })
}

fn admitted_of(pool: &PoolId, mut reader: Reader<'_>, at: RegistryTime) -> Result<Change, Garbled> {
    let id = reader.take(16)?;
    let ttl = Span::from_millis(reader.number(5)?);
    let expires = time(&mut reader)?;
    let session = Box::new(session_of(pool, id, at, ttl, reader.part()?)?);
    Ok(Change::Admitted { session, expires, particulars: Box::new(particulars_of(reader.rest())?) })
}

fn ended_of(mut reader: Reader<'_>) -> Result<Change, Garbled> {
    let session = id_of(reader.take(16)?)?;
    let reason = end_reason_of(i64::from(reader.byte()?))?;
    let (last_heartbeat, expires) = (time(&mut reader)?, time(&mut reader)?);
    let tier = Tier(reader.byte()?);
    Ok(Change::Ended { session, holder: holder(reader)?, tier, reason, last_heartbeat, expires })
}

fn denied_of(mut reader: Reader<'_>) -> Result<Denied, Garbled> {
    let why = denial_of(i64::from(reader.byte()?), reader.number(6)?)?;
    let (count, folded) = (reader.number(5)?, reader.byte()? == 1);
    Ok(Denied { holder: holder(reader)?, why, count, folded })
}

/// Decodes a denial from its reason and the reason's value.
pub(in crate::redis) fn denial_of(why: i64, value: u64) -> Result<Denial, Garbled> {
    match why {
        scripts::FULL => {
            let free_in = (value != NEVER_MILLIS).then(|| Span::from_millis(value));
            Ok(Denial::Full { free_in })
        }
        scripts::OVER => Ok(Denial::EntitlementOver { ended_at: RegistryTime::from_millis(value) }),
        scripts::CLOSED => Ok(Denial::EntitlementClosed),
        _ => Err(Garbled("a denial")),
    }
}

/// Returns the end reason of a number.
pub(in crate::redis) fn end_reason_of(number: i64) -> Result<EndReason, Garbled> {
    EndReason::ALL
        .into_iter()
        .find(|reason| scripts::reason_number(*reason) == number)
        .ok_or(Garbled("a reason"))
}

fn time(reader: &mut Reader<'_>) -> Result<RegistryTime, Garbled> {
    Ok(RegistryTime::from_millis(reader.number(6)?))
}

fn holder(reader: Reader<'_>) -> Result<Holder, Garbled> {
    let text: ArcStr = reader.rest_text()?;
    Ok(Holder::new(text))
}
