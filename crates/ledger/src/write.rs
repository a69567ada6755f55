//! The input and the result of writes to licenses, plans and subscriptions.

use seatkeeper_core::{Origin, Region, RegistryTime};

use crate::{Error, Idempotency};

/// The origin, the time and the conditions of a write.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The actor and the request causing the write.
    pub origin: &'a Origin,
    /// The registry's time.
    pub at: RegistryTime,
    /// The caller's idempotency key, if the caller sent a key.
    pub idempotency: Option<&'a Idempotency>,
    /// The region in which the subscriber must be at home for a write to a subscription. `None`: the home does not matter,
    /// because there are no regions, or because the subscription comes along with a home.
    pub home: Option<Region>,
    /// The version that a changed entry must have (compare-and-swap). `None`: any version. A change without effect
    /// succeeds at any version, so that a repeat finds its own change done.
    pub expected_version: Option<u64>,
}

impl Write<'_> {
    /// Returns [`Error::VersionConflict`] if the write expects another version than `current`.
    pub(crate) fn check_version(&self, current: u64) -> Result<(), Error> {
        match self.expected_version {
            Some(expected) if expected != current => Err(Error::VersionConflict { current }),
            _ => Ok(()),
        }
    }
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written<T> {
    /// The entity after the write. After a replay, the entity as first answered.
    pub value: T,
    /// The effect of the write.
    pub effect: Effect,
}

/// The effect of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The write made a change.
    Changed,
    /// The entity already had the wanted state.
    Unchanged,
    /// A retry of an answered request. The first answer is returned, and nothing is written.
    Replayed,
}
