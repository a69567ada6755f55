//! The three clocks of a client, and points on the one that decides.

use std::time::Duration;

/// A reading of the three clocks at an instant. The clocks have separate origins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The monotonic clock, which may stand still while the machine sleeps.
    pub mono: Duration,
    /// The monotonic clock that counts sleep (`CLOCK_BOOTTIME` on Linux). Every deadline uses this clock.
    pub boot: Duration,
    /// The wall clock since 1970, for logs alone: it may jump in both directions.
    pub wall: Duration,
}

/// A gap between `boot` and `mono` of more than this is a sleep of the machine.
const SLEEP_GAP: Duration = Duration::from_secs(2);

impl Now {
    /// Returns true if the machine slept between `earlier` and this reading.
    #[must_use]
    pub fn slept_since(self, earlier: Self) -> bool {
        self.lead().has_slept_since(earlier.lead())
    }

    /// Returns the time by which `boot` leads `mono`.
    pub(crate) fn lead(self) -> ClockLead {
        ClockLead(nanoseconds(self.boot).wrapping_sub(nanoseconds(self.mono)).cast_signed())
    }

    /// Returns this instant as a point on the `boot` clock.
    #[must_use]
    pub fn instant(self) -> Deadline {
        Deadline::from_boot(self.boot)
    }
}

/// The time by which the `boot` clock leads the `mono` clock, in nanoseconds. Only a sleep of the machine makes the lead grow.
/// The clocks have separate origins, so a lead may be negative.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockLead(i64);

impl ClockLead {
    /// Returns true if the machine slept between `earlier` and this lead.
    pub(crate) fn has_slept_since(self, earlier: Self) -> bool {
        let growth = u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or_default();
        Duration::from_nanos(growth) > SLEEP_GAP
    }
}

/// A point on the `boot` clock.
///
/// A seat has a dozen deadlines, so a `Deadline` is a number of nanoseconds: half the size of a [`Duration`], and enough for
/// five centuries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(u64);

impl Deadline {
    /// The end of time: a deadline that never passes.
    pub const NEVER: Self = Self(u64::MAX);

    /// Returns the point at this reading of the `boot` clock.
    #[must_use]
    pub fn from_boot(boot: Duration) -> Self {
        Self(nanoseconds(boot))
    }

    /// Returns the reading of the `boot` clock at this point.
    #[must_use]
    pub fn boot(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// Returns the point `span` later; [`NEVER`](Self::NEVER) if `span` is too long to add.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanoseconds(span)))
    }

    /// Returns the point `span` earlier; the beginning of the clock if `span` is too long to subtract.
    pub(crate) fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(nanoseconds(span)))
    }

    /// Returns true at this point and later.
    #[must_use]
    pub fn has_passed(self, now: Now) -> bool {
        nanoseconds(now.boot) >= self.0
    }

    /// Returns the time from this point to `now`; zero before the point.
    pub(crate) fn elapsed(self, now: Now) -> Duration {
        now.boot.saturating_sub(self.boot())
    }

    /// Returns the time from `now` to this point; zero once the point has passed.
    #[must_use]
    pub fn remaining(self, now: Now) -> Duration {
        self.boot().saturating_sub(now.boot)
    }
}

fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}
