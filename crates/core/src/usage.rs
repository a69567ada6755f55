//! Metering of capacities, exact to the last digit.
//!
//! An amount is a whole number of millionths of a unit. A unit is a session of tier 1 held for 30 days. The
//! usage of a session up to an instant is the exact total, rounded once. A window's share is the difference
//! of two rounded totals. Invariant: for any division of a session's life into windows, the shares sum to the
//! rounded total, so no remainder is carried from window to window.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;

use crate::{RegistryTime, Span, Tier};

/// Milliseconds of a tier 1 session in a millionth of a unit: 30 days over a million.
const MILLIS_PER_MICRO: u128 = 30 * 24 * 3_600 * 1_000 / 1_000_000;

/// An amount of use, in millionths of a unit. Displayed as an exact decimal number of six places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usage(u64);

impl Usage {
    /// The zero amount.
    pub const ZERO: Self = Self(0);

    /// Creates an amount of `micros` millionths of a unit.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the amount in millionths of a unit.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the usage of a session of `tier` held for `held`, rounded half up to a millionth. The number
    /// of the tier is the weight: tier 3 counts three times.
    pub const fn total(held: Span, tier: Tier) -> Self {
        let exact = held.as_millis() as u128 * tier.0 as u128;
        // At most 2^64 × 255 / 2,592, which fits.
        Self(((exact + MILLIS_PER_MICRO / 2) / MILLIS_PER_MICRO) as u64)
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MICROS: u64 = 1_000_000;
        write!(f, "{}.{:06}", self.0 / MICROS, self.0 % MICROS)
    }
}

impl Add for Usage {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// A half-open interval of the registry's time: includes its start, excludes its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    starts: RegistryTime,
    ends: RegistryTime,
}

impl Window {
    /// Creates the window from `starts` to `ends`. `None` if the window would be empty.
    pub fn new(starts: RegistryTime, ends: RegistryTime) -> Option<Self> {
        (starts < ends).then_some(Self { starts, ends })
    }

    /// Returns the first instant of the window.
    pub const fn starts(self) -> RegistryTime {
        self.starts
    }

    /// Returns the first instant after the window.
    pub const fn ends(self) -> RegistryTime {
        self.ends
    }
}

/// The metered part of a session: from the start to the end, in a single tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metered {
    /// Start of the session.
    pub started: RegistryTime,
    /// End of the session, for any reason. For a live session, the latest possible end.
    pub over: RegistryTime,
    /// Tier of the session.
    pub tier: Tier,
}

impl Metered {
    /// Returns the usage from the start up to `at`.
    pub fn used_by(self, at: RegistryTime) -> Usage {
        Usage::total(self.over.min(at).since(self.started), self.tier)
    }

    /// Returns the usage within `window`.
    pub fn used_in(self, window: Window) -> Usage {
        // No underflow: a total never shrinks with time.
        Usage(self.used_by(window.ends).0 - self.used_by(window.starts).0)
    }
}

#[cfg(test)]
mod tests;
