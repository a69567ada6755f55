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
        let boot = self.boot.saturating_sub(earlier.boot);
        let mono = self.mono.saturating_sub(earlier.mono);
        boot.saturating_sub(mono) > SLEEP_GAP
    }

    /// Returns this instant as a point on the `boot` clock.
    #[must_use]
    pub fn instant(self) -> Deadline {
        Deadline(self.boot)
    }
}

/// A point on the `boot` clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Duration);

impl Deadline {
    /// Returns the point at this reading of the `boot` clock.
    #[must_use]
    pub fn from_boot(boot: Duration) -> Self {
        Self(boot)
    }

    /// Returns the reading of the `boot` clock at this point.
    #[must_use]
    pub fn boot(self) -> Duration {
        self.0
    }

    /// Returns the point `span` later; the end of time if `span` is too long to add.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }

    /// Returns true at this point and later.
    #[must_use]
    pub fn has_passed(self, now: Now) -> bool {
        now.boot >= self.0
    }

    /// Returns the time from this point to `now`; zero before the point.
    pub(crate) fn elapsed(self, now: Now) -> Duration {
        now.boot.saturating_sub(self.0)
    }

    /// Returns the time from `now` to this point; zero once the point has passed.
    #[must_use]
    pub fn remaining(self, now: Now) -> Duration {
        self.0.saturating_sub(now.boot)
    }
}
