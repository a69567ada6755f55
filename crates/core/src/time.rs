//! The registry's time, and spans of it.

use std::ops::{Add, Sub};

use serde::{Deserialize, Serialize};
/// A reading of the registry's clock, in whole milliseconds since the Unix epoch.
///
/// Only a registry makes these; a node's wall clock is another type and never
/// decides who lives. Arithmetic saturates, so no input can overflow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RegistryTime(u64);

impl RegistryTime {
    /// The time `millis` milliseconds after the Unix epoch.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

/// A length of time on the registry's clock, in whole milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of `millis` milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// A span of `secs` seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000))
    }

    /// Its length in milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// Its length in seconds, rounded up: a client that waits so long has waited long enough.
    pub const fn as_secs_ceil(self) -> u64 {
        self.0.div_ceil(1_000)
    }

    /// Its length in whole seconds, rounded down: a client that counts on so long is never late.
    pub const fn as_secs_floor(self) -> u64 {
        self.0 / 1_000
    }
}

impl Add<Span> for RegistryTime {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Sub<Span> for RegistryTime {
    type Output = Self;
    fn sub(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

#[cfg(test)]
mod tests;
