//! Identities of pools, and the buckets that group pools.

use std::fmt;

use arcstr::ArcStr;
use serde::{Deserialize, Serialize};

use crate::TenantId;

/// Number of buckets, equal on every node and fixed for ever, because a session id contains a bucket number.
pub const BUCKETS: u16 = 256;

/// Most members of a group that watches together on one screen.
pub const GROUP_MEMBERS_MAX: u32 = 8;

crate::named_enum! {
    /// The kind of a pool. A kind has its own API, default policy and type of holder.
    #[derive(PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum PoolKind else "not a kind of pool" {
        /// A floating license, held by machines, users or processes.
        License = "license",
        /// A streaming subscriber, held by device fingerprints.
        Subscriber = "subscriber",
        /// A (user, capacity) pair, held by the user.
        Capacity = "capacity",
        /// A group that watches together on a single screen, held by device fingerprints.
        Group = "group",
    }
}

impl PoolKind {
    /// Returns `true` if heartbeats keep the sessions alive. Otherwise a session lasts for a single TTL from
    /// its start.
    pub const fn has_heartbeats(self) -> bool {
        match self {
            Self::License | Self::Subscriber | Self::Group => true,
            Self::Capacity => false,
        }
    }

    /// Returns `true` if the answer to a heartbeat tells the interval of heartbeats. A holder without such answers
    /// keeps the interval of its admission.
    pub const fn tells_interval(self) -> bool {
        match self {
            Self::License => true,
            Self::Subscriber | Self::Group | Self::Capacity => false,
        }
    }
}

/// The identity of a pool, unique over every tenant and kind.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PoolId {
    /// Kind of the pool.
    pub kind: PoolKind,
    /// Tenant of the pool.
    pub tenant: TenantId,
    /// Name within the tenant and kind: a license id, a user, a (user, capacity) pair, or the session
    /// id of a group's screen.
    pub name: ArcStr,
}

impl PoolId {
    /// Creates the id of the pool `name` of `tenant`.
    pub fn new(kind: PoolKind, tenant: TenantId, name: impl Into<ArcStr>) -> Self {
        Self { kind, tenant, name: name.into() }
    }

    /// Returns the bucket of the pool.
    pub fn bucket(&self) -> Bucket {
        Bucket::for_pool(self)
    }
}

impl fmt::Debug for PoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind.as_str(), self.tenant, self.name)
    }
}

/// A group of pools, one of [`BUCKETS`]. Data that must change atomically for a pool lives in a single
/// bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(u16);

impl Bucket {
    /// The bucket 0.
    pub const FIRST: Self = Self(0);

    /// Returns the bucket `number`, `None` from [`BUCKETS`] on.
    pub const fn new(number: u16) -> Option<Self> {
        if number < BUCKETS { Some(Self(number)) } else { None }
    }

    /// Returns the bucket `number`. Every byte is a valid number, see [`BUCKETS`].
    pub(crate) const fn of_byte(number: u8) -> Self {
        Self(number as u16)
    }

    /// Iterates over every bucket, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..BUCKETS).map(Self)
    }

    /// Returns the number of the bucket, below [`BUCKETS`].
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Hashes kind, tenant and name by FNV-1a (64 bits, folded). Each part ends with a byte that UTF-8 never
    /// contains. Part of the stored format: a different hash would send old session ids to wrong buckets.
    fn for_pool(pool: &PoolId) -> Self {
        const OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0000_0100_0000_01b3;
        const CLOSE: u8 = 0xff;
        let parts = [pool.kind.as_str(), pool.tenant.as_str(), &pool.name];
        let hash = parts
            .iter()
            .flat_map(|part| part.bytes().chain([CLOSE]))
            .fold(OFFSET_BASIS, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
        let folded = hash ^ (hash >> 32);
        Self((folded % u64::from(BUCKETS)) as u16)
    }
}

#[cfg(test)]
mod tests;
