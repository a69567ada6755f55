//! The clocks of this host.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use seatkeeper_client_core::Now;

#[cfg(any(target_os = "linux", target_os = "android"))]
const BOOT: ClockId = ClockId::Boottime;
/// Elsewhere the monotonic clock counts sleep itself, or no clock does.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const BOOT: ClockId = ClockId::Monotonic;

/// Reads all three clocks.
pub(crate) fn now() -> Now {
    Now { mono: read(ClockId::Monotonic), boot: boot(), wall: read(ClockId::Realtime) }
}

/// Reads the clock that counts sleep.
pub(crate) fn boot() -> Duration {
    read(BOOT)
}

fn read(clock: ClockId) -> Duration {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    // A wall clock before 1970 reads as 1970: no decision rests on it.
    let nanoseconds = u32::try_from(tv_nsec).unwrap_or_default();
    Duration::new(u64::try_from(tv_sec).unwrap_or_default(), nanoseconds)
}
