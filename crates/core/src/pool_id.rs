//! What has a limit, and the bucket that all of it lives in.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::TenantId;

/// How many buckets pools are spread over: the same on every node, for ever. A session id carries one.
pub const BUCKETS: u16 = 256;

/// The kind of a pool: each has its API, its default policy and its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolKind {
    /// One floating license; held by machines, users or processes.
    License,
    /// One streaming subscriber; held by device fingerprints.
    Subscriber,
    /// One (user, capacity); held by the user.
    Capacity,
}

impl PoolKind {
    /// The kind's name in records, metrics and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::License => "license",
            Self::Subscriber => "subscriber",
            Self::Capacity => "capacity",
        }
    }

    /// Whether its sessions are kept alive by heartbeats; the others last for one TTL from their start.
    pub const fn has_heartbeats(self) -> bool {
        match self {
            Self::License | Self::Subscriber => true,
            Self::Capacity => false,
        }
    }
}

/// A text that names no kind of pool.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a kind of pool")]
pub struct NotAPoolKind;

impl FromStr for PoolKind {
    type Err = NotAPoolKind;
    fn from_str(text: &str) -> Result<Self, NotAPoolKind> {
        [Self::License, Self::Subscriber, Self::Capacity]
            .into_iter()
            .find(|kind| kind.as_str() == text)
            .ok_or(NotAPoolKind)
    }
}

/// A pool's identity: unique over all tenants and kinds.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PoolId {
    /// The kind of the pool.
    pub kind: PoolKind,
    /// The tenant that owns it.
    pub tenant: TenantId,
    /// Its name within the tenant and kind: a license id, a user, a (user, capacity).
    pub name: Arc<str>,
}

impl PoolId {
    /// The pool `name` of `tenant`.
    pub fn new(kind: PoolKind, tenant: TenantId, name: impl Into<Arc<str>>) -> Self {
        Self { kind, tenant, name: name.into() }
    }

    /// The bucket this pool lives in.
    pub fn bucket(&self) -> Bucket {
        Bucket::of(self)
    }
}

impl fmt::Debug for PoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind.as_str(), self.tenant, self.name)
    }
}

/// One of [`BUCKETS`] groups of pools. All that must change together for a pool lives in its bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket(u16);

impl Bucket {
    /// The bucket with this number, if there is one.
    pub const fn new(number: u16) -> Option<Self> {
        if number < BUCKETS { Some(Self(number)) } else { None }
    }

    /// The bucket with this number: there is one for each byte, see [`BUCKETS`].
    pub(crate) const fn of_byte(number: u8) -> Self {
        Self(number as u16)
    }

    /// Every bucket, in order.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..BUCKETS).map(Self)
    }

    /// Its number, below [`BUCKETS`].
    pub const fn number(self) -> u16 {
        self.0
    }

    /// FNV-1a (64 bit, folded) over kind, tenant and name, each closed by a byte that UTF-8 never holds.
    /// It is part of the stored format: another hash would send old session ids to wrong buckets.
    fn of(pool: &PoolId) -> Self {
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
