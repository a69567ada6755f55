//! The clock of a host that cannot be set, and that goes on while the host is suspended.

use std::ops::{Add, Sub};
use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};

#[cfg(any(target_os = "linux", target_os = "android"))]
const CLOCK: ClockId = ClockId::Boottime;
/// Elsewhere the monotonic clock counts suspension itself, or no clock does.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const CLOCK: ClockId = ClockId::Monotonic;

/// An instant by a clock that cannot be set, and that goes on while the host is suspended.
///
/// [`std::time::Instant`] stands still meanwhile: a lease measured by it would outlive the suspension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostInstant(Duration);

impl HostInstant {
    /// Reads the clock.
    pub fn now() -> Self {
        let Timespec { tv_sec, tv_nsec } = clock_gettime(CLOCK);
        // Neither part is negative: the clock starts at the boot of the host.
        Self(Duration::new(
            u64::try_from(tv_sec).unwrap_or_default(),
            u32::try_from(tv_nsec).unwrap_or_default(),
        ))
    }

    /// Returns the time since this instant.
    pub fn elapsed(self) -> Duration {
        Self::now().saturating_duration_since(self)
    }

    /// Returns the instant `span` before this one; `None` if the host had not booted yet.
    pub fn checked_sub(self, span: Duration) -> Option<Self> {
        self.0.checked_sub(span).map(Self)
    }

    /// Returns the time from `earlier` to this instant; zero if `earlier` is later.
    pub fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for HostInstant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

impl Sub<Duration> for HostInstant {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
