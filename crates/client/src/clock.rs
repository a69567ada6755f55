//! The clocks of this host.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, Timespec, clock_gettime};
use seatkeeper_client_core::Now;

#[cfg(any(target_os = "linux", target_os = "android"))]
const BOOT: ClockId = ClockId::Boottime;
/// Elsewhere the monotonic clock counts sleep itself, or no clock does.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const BOOT: ClockId = ClockId::Monotonic;

/// Reads all three clocks.
pub(crate) fn now() -> Now {
    Now { mono: mono(), boot: boot(), wall: read(ClockId::Realtime) }
}

/// Reads the clock that stands still while the machine sleeps. On Apple systems `CLOCK_MONOTONIC` counts sleep.
fn mono() -> Duration {
    if cfg!(target_vendor = "apple") { uptime() } else { read(ClockId::Monotonic) }
}

/// Returns the time since the first call, by the clock of [`Instant`]: `CLOCK_UPTIME_RAW` on Apple systems.
fn uptime() -> Duration {
    static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    ORIGIN.elapsed()
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::Command;

    use super::*;

    /// The environment variable of a process in a time namespace.
    const SHIFTED: &str = "SEATKEEPER_TEST_SHIFTED_CLOCK";
    /// A sleep of the host, as the namespace shows it.
    const SLEEP: Duration = Duration::from_secs(5_000);

    #[test]
    fn the_uptime_goes_on_like_the_monotonic_clock() {
        let (began, first) = (mono(), uptime());
        std::thread::sleep(Duration::from_millis(20));
        let span = uptime() - first;
        assert!((Duration::from_millis(20)..=mono() - began).contains(&span), "{span:?}");
    }

    /// No test puts the host to sleep. A time namespace shifts the clock that counts sleep, as a sleep does.
    #[test]
    fn deadlines_use_the_clock_that_counts_sleep() {
        if std::env::var_os(SHIFTED).is_some() {
            let Now { mono, boot, .. } = now();
            assert!(boot >= mono + SLEEP, "boot {boot:?}, mono {mono:?}");
            return;
        }
        let in_namespace = |program: &str| {
            let mut unshare = Command::new("unshare");
            unshare.args(["--time", "--boottime", &SLEEP.as_secs().to_string(), program]);
            unshare
        };
        if !in_namespace("true").output().is_ok_and(|output| output.status.success()) {
            println!("skipped: this user may create no time namespace");
            return;
        }
        let test = std::env::current_exe().unwrap();
        let mut shifted = in_namespace(test.to_str().unwrap());
        shifted
            .args(["--exact", "clock::tests::deadlines_use_the_clock_that_counts_sleep"])
            .env(SHIFTED, "1");
        let output = shifted.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && told.contains("1 passed"), "{told}");
    }
}
