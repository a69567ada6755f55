//! What holding a capacity costs, to the last digit.
//!
//! Amounts are whole millionths of a unit; a unit is a session of tier 1 that was held for 30 days. What a
//! session has used at an instant is its exact total, rounded once; a window's part is the difference
//! between two of these totals. So whatever windows a life is cut into, its parts sum to the rounding of
//! the whole, and nothing has to be carried from one window to the next.

use std::fmt;
use std::iter::Sum;
use std::ops::Add;

use crate::{RegistryTime, Span, Tier};

/// Milliseconds of a session of tier 1 in a millionth of a unit: 30 days over a million.
const MILLIS_PER_MICRO: u128 = 30 * 24 * 3_600 * 1_000 / 1_000_000;

/// An amount of use, in millionths of a unit. As text it is an exact decimal number of six places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usage(u64);

impl Usage {
    /// None at all.
    pub const ZERO: Self = Self(0);

    /// So many millionths of a unit.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// The amount in millionths of a unit.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// What a session of this tier has used that was held for so long, rounded to the nearest millionth,
    /// a half up. A tier counts as many times as its number says.
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

/// A stretch of the registry's time: its start belongs to it, its end to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Window {
    starts: RegistryTime,
    ends: RegistryTime,
}

impl Window {
    /// The window from `starts` to `ends`; none if no time is in it.
    pub fn new(starts: RegistryTime, ends: RegistryTime) -> Option<Self> {
        (starts < ends).then_some(Self { starts, ends })
    }

    /// Its first instant.
    pub const fn starts(self) -> RegistryTime {
        self.starts
    }

    /// The first instant after it.
    pub const fn ends(self) -> RegistryTime {
        self.ends
    }
}

/// The part of a session that is metered: from its start until it was over, in one tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metered {
    /// When it started.
    pub started: RegistryTime,
    /// When it was over, by whatever came first; of a live session, when it will be at the latest.
    pub over: RegistryTime,
    /// Its tier.
    pub tier: Tier,
}

impl Metered {
    /// What it had used by `at`.
    pub fn used_by(self, at: RegistryTime) -> Usage {
        Usage::total(self.over.min(at).since(self.started), self.tier)
    }

    /// What it used in the window.
    pub fn used_in(self, window: Window) -> Usage {
        // A total never shrinks as time goes on.
        Usage(self.used_by(window.ends).0 - self.used_by(window.starts).0)
    }
}

#[cfg(test)]
mod tests;
