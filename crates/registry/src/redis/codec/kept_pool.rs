//! Pools in their stored form: see `lib/pool.lua`.

use seatkeeper_core::{PoolId, Session};

use super::bytes::{Garbled, Reader};
use super::pool_id::pool_id_of;
use super::session::{KeptSession, session_of};
use crate::redis::scripts::{HAS_DENIALS, HAS_TERMS, IS_EMPTY, IS_LARGE, TERMS_BYTES};

const SEQ_BYTES: usize = 6;
const PLACE_BYTES: usize = 6;
const TIME_BYTES: usize = 6;

/// The decoded state of a pool, up to its sessions.
pub(in crate::redis) struct KeptHead<'b> {
    pub(in crate::redis) flags: u8,
    /// Number of the pool's last event.
    pub(in crate::redis) seq: u64,
    pub(in crate::redis) id: &'b [u8],
    /// The encoded terms; empty if unknown.
    pub(in crate::redis) terms: &'b [u8],
    /// The encoded sessions of a small pool.
    pub(in crate::redis) rest: Reader<'b>,
}

impl<'b> KeptHead<'b> {
    pub(in crate::redis) fn decode(bytes: &'b [u8]) -> Result<Self, Garbled> {
        let mut reader = Reader::new(bytes);
        let flags = reader.byte()?;
        let seq = reader.number(SEQ_BYTES)?;
        reader.take(PLACE_BYTES)?;
        if flags & IS_EMPTY != 0 {
            reader.take(TIME_BYTES)?;
        }
        let id = reader.part()?;
        let terms = reader.take(if flags & HAS_TERMS != 0 { TERMS_BYTES } else { 0 })?;
        if flags & HAS_DENIALS != 0 {
            reader.part()?;
        }
        Ok(Self { flags, seq, id, terms, rest: reader })
    }
}

/// A pool as a search for a session needs it.
pub(in crate::redis) struct KeptPool {
    pub(in crate::redis) pool: PoolId,
    /// Sessions of a small pool; `None` for a large pool, which stores sessions under separate keys.
    pub(in crate::redis) sessions: Option<Vec<Session>>,
}

impl KeptPool {
    pub(in crate::redis) fn decode(bytes: &[u8]) -> Result<Self, Garbled> {
        let KeptHead { flags, id, rest, .. } = KeptHead::decode(bytes)?;
        let pool = pool_id_of(id)?;
        if flags & IS_LARGE != 0 {
            return Ok(Self { pool, sessions: None });
        }
        let session = |kept: KeptSession<'_>| {
            let KeptSession { id, last_heartbeat, ttl, body, .. } = kept;
            session_of(&pool, id, last_heartbeat, ttl, body)
        };
        let sessions = KeptSession::all(rest)?.into_iter().map(session).collect::<Result<_, _>>()?;
        Ok(Self { pool, sessions: Some(sessions) })
    }
}
