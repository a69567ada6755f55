//! A pool as it is kept: see `lib/pool.lua`.

use seatkeeper_core::{PoolId, Session};

use super::bytes::{Garbled, Reader};
use super::pool_id::pool_id_of;
use super::session::kept_sessions_of;
use crate::redis::scripts::{HAS_DENIALS, HAS_TERMS, IS_EMPTY, IS_LARGE, TERMS_BYTES};

const SEQ_BYTES: usize = 6;
const TIME_BYTES: usize = 6;

/// What a search looks at.
pub(in crate::redis) struct KeptPool {
    pub(in crate::redis) pool: PoolId,
    /// Its sessions, if they are kept with it: those of a large pool are not.
    pub(in crate::redis) sessions: Option<Vec<Session>>,
}

impl KeptPool {
    pub(in crate::redis) fn of(bytes: &[u8]) -> Result<Self, Garbled> {
        let mut reader = Reader::new(bytes);
        let flags = reader.byte()?;
        let last_event = SEQ_BYTES;
        reader.take(SEQ_BYTES + last_event)?;
        if flags & IS_EMPTY != 0 {
            reader.take(TIME_BYTES)?;
        }
        let pool = pool_id_of(reader.part()?)?;
        if flags & HAS_TERMS != 0 {
            reader.take(TERMS_BYTES)?;
        }
        if flags & HAS_DENIALS != 0 {
            reader.part()?;
        }
        let sessions = (flags & IS_LARGE == 0).then(|| kept_sessions_of(&pool, reader)).transpose()?;
        Ok(Self { pool, sessions })
    }
}
