//! Session ids that contain their routing: a request with an id finds its bucket without a look-up.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::{Uuid, Variant};

use crate::{Bucket, RegistryTime};

/// The id of a session: a UUID of version 8 (RFC 9562) with the session's bucket and home region.
///
/// ```text
/// 44 bits   milliseconds since the Unix epoch. Ids sort by start, so new ids append to the end of an
///           index, and a batch of ids dirties few pages
///  4 bits   home region, high part
///  4 bits   version 8
///  4 bits   home region, low part
///  8 bits   bucket
///  2 bits   variant
///  1 bit    the session's seat was handed over: see `Replacement::is_handed_over`
/// 61 bits   random
/// ```
/// Ids are ordered by their bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Uuid", into = "Uuid")]
pub struct SessionId(Uuid);

/// A region: 1 to 255, or 0 for a deployment without regions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Region(u8);

impl Region {
    /// Creates the region `number`.
    pub const fn new(number: u8) -> Self {
        Self(number)
    }

    /// Returns the number of the region.
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// Error: the text or UUID is not a session id.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a session id")]
pub struct NotASessionId;

impl SessionId {
    /// The mark of a seat that was handed over, in the ninth byte.
    const HANDED_OVER: u8 = 0x20;

    /// Creates an id with the low 61 bits of `random`.
    pub fn mint(started: RegistryTime, bucket: Bucket, region: Region, random: u64) -> Self {
        const VERSION: u64 = 8;
        let region = u64::from(region.number());
        let high = started.as_millis() << 20
            | (region >> 4) << 16
            | VERSION << 12
            | (region & 0xf) << 8
            | u64::from(bucket.number());
        let mut bytes = (u128::from(high) << 64 | u128::from(random)).to_be_bytes();
        bytes[8] = 0x80 | (bytes[8] & 0x1f);
        Self(Uuid::from_bytes(bytes))
    }

    /// Returns the id with the mark of a session whose seat was handed over.
    pub const fn with_handed_over_seat(self) -> Self {
        let mut bytes = self.0.into_bytes();
        bytes[8] |= Self::HANDED_OVER;
        Self(Uuid::from_bytes(bytes))
    }

    /// Returns `true` if another session has handed its seat over to the session.
    pub const fn has_handed_over_seat(self) -> bool {
        self.0.as_bytes()[8] & Self::HANDED_OVER != 0
    }

    /// Returns the UUID.
    pub const fn as_uuid(self) -> Uuid {
        self.0
    }

    /// Returns the sixteen bytes of the id, in sort order.
    pub const fn as_bytes(&self) -> &[u8; 16] {
        self.0.as_bytes()
    }

    /// Returns the time of admission.
    pub fn started(self) -> RegistryTime {
        let (high, _) = self.0.as_u64_pair();
        RegistryTime::from_millis(high >> 20)
    }

    /// Returns the bucket of the session's pool.
    pub fn bucket(self) -> Bucket {
        Bucket::of_byte(self.0.as_bytes()[7])
    }

    /// Returns the region of the admission.
    pub fn region(self) -> Region {
        let bytes = self.0.as_bytes();
        Region(bytes[5] << 4 | bytes[6] & 0xf)
    }
}

impl FromStr for SessionId {
    type Err = NotASessionId;
    fn from_str(text: &str) -> Result<Self, NotASessionId> {
        Self::try_from(Uuid::try_parse(text).map_err(|_| NotASessionId)?)
    }
}

impl TryFrom<Uuid> for SessionId {
    type Error = NotASessionId;

    /// Converts a UUID, if version and variant fit a session id.
    fn try_from(uuid: Uuid) -> Result<Self, NotASessionId> {
        let known = uuid.get_version_num() == 8 && uuid.get_variant() == Variant::RFC4122;
        if known { Ok(Self(uuid)) } else { Err(NotASessionId) }
    }
}

impl From<SessionId> for Uuid {
    fn from(id: SessionId) -> Self {
        id.0
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
