//! Session ids that route themselves.

use std::fmt;
use std::str::FromStr;

use uuid::{Uuid, Variant};

use crate::{BUCKETS, Bucket, RegistryTime};

/// A session's name: a UUID of version 8 (RFC 9562) that carries its bucket and home region.
///
/// ```text
/// bytes 0..4   seconds since the Unix epoch, so that ids sort by start and index well
/// bytes 4..6   bucket
/// bytes 6..8   version 8, then the home region (12 bits)
/// bytes 8..16  variant, then 62 random bits
/// ```
/// The order of ids is the order of their bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Uuid);

/// The region a session was admitted in: 0 to 4095.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Region(u16);

impl Region {
    /// The region with this number, below 4096.
    pub const fn new(number: u16) -> Option<Self> {
        if number < 1 << 12 { Some(Self(number)) } else { None }
    }

    /// Its number.
    pub const fn number(self) -> u16 {
        self.0
    }
}

/// A text or UUID that cannot be a session's id.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a session id")]
pub struct NotASessionId;

impl SessionId {
    /// Makes an id; `random` gives its 62 low bits.
    pub fn mint(started: RegistryTime, bucket: Bucket, region: Region, random: u64) -> Self {
        let seconds = (started.as_millis() / 1_000) as u32;
        let high = u64::from(seconds) << 32 | u64::from(bucket.number()) << 16 | u64::from(region.number());
        let mut bytes = (u128::from(high) << 64 | u128::from(random)).to_be_bytes();
        bytes[6] = 0x80 | (bytes[6] & 0x0f);
        bytes[8] = 0x80 | (bytes[8] & 0x3f);
        Self(Uuid::from_bytes(bytes))
    }

    /// The id that a UUID spells, if its version, variant and bucket can be a session's.
    pub fn from_uuid(uuid: Uuid) -> Result<Self, NotASessionId> {
        let known = uuid.get_version_num() == 8
            && uuid.get_variant() == Variant::RFC4122
            && bucket_number(uuid) < BUCKETS;
        if known { Ok(Self(uuid)) } else { Err(NotASessionId) }
    }

    /// The UUID itself.
    pub const fn as_uuid(self) -> Uuid {
        self.0
    }

    /// The bucket of the session's pool.
    pub fn bucket(self) -> Bucket {
        Bucket::wrapping(bucket_number(self.0))
    }

    /// The region that admitted the session.
    pub fn region(self) -> Region {
        let bytes = self.0.as_bytes();
        Region(u16::from_be_bytes([bytes[6], bytes[7]]) & 0x0fff)
    }
}

fn bucket_number(uuid: Uuid) -> u16 {
    let bytes = uuid.as_bytes();
    u16::from_be_bytes([bytes[4], bytes[5]])
}

impl FromStr for SessionId {
    type Err = NotASessionId;
    fn from_str(text: &str) -> Result<Self, NotASessionId> {
        Self::from_uuid(Uuid::try_parse(text).map_err(|_| NotASessionId)?)
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests;
