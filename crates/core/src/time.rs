//! The registry's time, and spans of time.

use std::fmt;
use std::num::NonZeroU64;
use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};

/// A reading of the registry's clock, in whole milliseconds since the Unix epoch.
///
/// Only a registry creates readings. The wall clock of a node is a different type and never decides an
/// expiry. Arithmetic saturates, so no input overflows. An optional reading takes eight bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
// One millisecond more than the reading, so that 0 stands for no reading.
pub struct RegistryTime(NonZeroU64);

impl RegistryTime {
    /// The latest reading.
    pub const MAX: Self = Self(NonZeroU64::MAX);

    /// Creates the time `millis` milliseconds after the Unix epoch, at most [`Self::MAX`].
    pub const fn from_millis(millis: u64) -> Self {
        Self(NonZeroU64::MIN.saturating_add(millis))
    }

    /// Returns the milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> u64 {
        self.0.get() - 1
    }

    /// Returns the time elapsed since `earlier`, or zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.as_millis().saturating_sub(earlier.as_millis()))
    }
}

/// The most by which an estimate of the registry's time is ahead of the registry, unless the clock was just set.
pub const ESTIMATE_AHEAD_MAX: Span = Span::from_millis(101);

impl Default for RegistryTime {
    /// Returns the Unix epoch.
    fn default() -> Self {
        Self::from_millis(0)
    }
}

impl fmt::Debug for RegistryTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RegistryTime").field(&self.as_millis()).finish()
    }
}

impl From<u64> for RegistryTime {
    fn from(millis: u64) -> Self {
        Self::from_millis(millis)
    }
}

impl From<RegistryTime> for u64 {
    fn from(time: RegistryTime) -> Self {
        time.as_millis()
    }
}

/// A length of time on the registry's clock, in whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span(u64);

impl Span {
    /// The empty span.
    pub const ZERO: Self = Self(0);

    /// Creates a span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Creates a span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000))
    }

    /// Returns the length in milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Returns the length in seconds, rounded up, for a client told to wait: the client never retries too
    /// early.
    pub const fn as_secs_ceil(self) -> u64 {
        self.0.div_ceil(1_000)
    }

    /// Returns the length in whole seconds, rounded down, for a client told a deadline: the client is never
    /// late.
    pub const fn as_secs_floor(self) -> u64 {
        self.0 / 1_000
    }
}

impl Add<Span> for RegistryTime {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self::from_millis(self.as_millis().saturating_add(span.0))
    }
}

impl Sub<Span> for RegistryTime {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self::from_millis(self.as_millis().saturating_sub(span.0))
    }
}

#[cfg(test)]
mod tests;
