//! Terms: version (8 bytes), limit (4), TTL (5), end (6), closed (1).

use seatkeeper_core::{RegistryTime, Seats, Span, Standing, Terms};

use super::bytes::{Garbled, Put as _, Reader, at_most};
use crate::redis::scripts::NEVER_MILLIS;

/// Encodes terms; no bytes for `None`.
pub(in crate::redis) fn terms_bytes(terms: Option<&Terms>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let Some(terms) = terms else { return bytes };
    bytes.put_number(terms.version, 8);
    bytes.put_number(u64::from(terms.limit.0), 4);
    bytes.put_number(at_most(terms.ttl.as_millis(), 5), 5);
    let ends_at = terms.ends_at.map_or(NEVER_MILLIS, |ends_at| at_most(ends_at.as_millis(), 6));
    bytes.put_number(ends_at, 6);
    bytes.push(match terms.standing {
        Standing::Open => 0,
        Standing::Closed => 1,
    });
    bytes
}

pub(in crate::redis) fn terms_of(bytes: &[u8]) -> Result<Option<Terms>, Garbled> {
    let mut reader = Reader::new(bytes);
    if reader.is_at_end() {
        return Ok(None);
    }
    Ok(Some(Terms {
        version: reader.number(8)?,
        limit: Seats(reader.u32()?),
        ttl: Span::from_millis(reader.number(5)?),
        ends_at: Some(reader.number(6)?).filter(|&at| at != NEVER_MILLIS).map(RegistryTime::from_millis),
        standing: if reader.byte()? == 0 { Standing::Open } else { Standing::Closed },
    }))
}
