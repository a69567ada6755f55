//! The head of a bucket: stage, epoch, clock, and the journal's numbers. `lib/bucket.lua` describes the
//! bytes.

use seatkeeper_core::{Bucket, RegistryTime};

use super::codec::{Garbled, Reader};
use super::scripts::{FILLING, FORMAT, HEAD_NUMBERS_BYTES, NEVER_MILLIS, REBUILDING, SERVING};
use crate::Identity;

/// The stage of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// A rebuild has begun: the old content is read, and then cleared.
    Rebuilding,
    /// A rebuild has cleared the bucket, and fills it. A late duplicate of a clearing step is refused.
    Filling,
    Serving,
}

/// The demand of a call: the required stage and epoch of the bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Demand {
    pub(super) bucket: Bucket,
    pub(super) stage: Stage,
    pub(super) epoch: u64,
}

impl Demand {
    /// Returns the stamp of a head that meets the demand on a server of this identity.
    pub(super) fn stamp(&self, identity: &str) -> Vec<u8> {
        stamp(self.stage, self.epoch, identity)
    }
}

/// Returns a stamp, the first part of a bucket's head.
pub(super) fn stamp(stage: Stage, epoch: u64, identity: &str) -> Vec<u8> {
    let (stage, identity) = match stage {
        Stage::Rebuilding => (REBUILDING, ""),
        Stage::Filling => (FILLING, ""),
        Stage::Serving => (SERVING, identity),
    };
    let mut bytes = vec![FORMAT, stage];
    bytes.extend_from_slice(&epoch.to_be_bytes()[2..]);
    bytes.extend_from_slice(identity.as_bytes());
    bytes
}

/// A bucket's head as read from Redis: stage, epoch, identity, journal positions and lease.
#[derive(Clone, Debug)]
pub(super) struct Head {
    pub(super) stage: Stage,
    pub(super) epoch: u64,
    /// Identity of the memory at the time of the rebuild; empty while the bucket is rebuilt.
    pub(super) identity: Identity,
    /// The latest time of the bucket on record. May be behind the bucket's time.
    pub(super) mark: RegistryTime,
    pub(super) last: u64,
    pub(super) acknowledged: u64,
    /// A lower bound of the time at which the first pool of the bucket is due.
    pub(super) due: RegistryTime,
    /// End of the bucket's lease unless renewed.
    pub(super) leased_until: RegistryTime,
}

impl Head {
    /// Returns the latest time of the server's clock that the head tells, up to the duration of a lease.
    pub(super) fn latest_time(&self) -> RegistryTime {
        let is_leased = self.leased_until < RegistryTime::from_millis(NEVER_MILLIS);
        if is_leased { self.mark.max(self.leased_until) } else { self.mark }
    }

    /// Reads a head.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, Garbled> {
        let split = bytes.len().checked_sub(HEAD_NUMBERS_BYTES).ok_or(Garbled("the head of a bucket"))?;
        let (mut stamp, mut numbers) = (Reader::new(&bytes[..split]), Reader::new(&bytes[split..]));
        if stamp.byte()? != FORMAT {
            return Err(Garbled("another version of Seatkeeper's format"));
        }
        let stage = match stamp.byte()? {
            REBUILDING => Stage::Rebuilding,
            FILLING => Stage::Filling,
            SERVING => Stage::Serving,
            _ => return Err(Garbled("the stage of a bucket")),
        };
        let epoch = stamp.number(6)?;
        let identity = Identity(stamp.rest_text()?.to_string().into());
        Ok(Self {
            stage,
            epoch,
            identity,
            mark: RegistryTime::from_millis(numbers.number(6)?),
            last: numbers.number(6)?,
            acknowledged: numbers.number(6)?,
            due: RegistryTime::from_millis(numbers.number(6)?),
            leased_until: RegistryTime::from_millis(numbers.number(6)?),
        })
    }
}
