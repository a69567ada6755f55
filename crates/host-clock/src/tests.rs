//! The clock in a time namespace. No test suspends a host: the namespace shifts the clock that counts suspension.

use std::process::Command;
use std::time::Instant;

use super::*;

/// The environment variable of a process in a time namespace.
const SHIFTED: &str = "SEATKEEPER_TEST_SUSPENDED";

/// The span for which the host of the namespace seems to have been suspended.
const SUSPENDED: Duration = Duration::from_secs(5_000);

#[test]
fn the_clock_counts_suspension() {
    if std::env::var_os(SHIFTED).is_some() {
        println!("reads {}", HostInstant::now().0.as_secs());
        return;
    }
    let before = HostInstant::now();
    let own = std::env::current_exe().expect("the path of this program");
    let mut shifted = Command::new("unshare");
    shifted.args(["--time", "--boottime", &SUSPENDED.as_secs().to_string()]).arg(own);
    shifted.args(["--exact", "tests::the_clock_counts_suspension", "--nocapture"]).env(SHIFTED, "1");
    let output = shifted.output().expect("`unshare` of util-linux runs");
    let shown = String::from_utf8_lossy(&output.stdout);
    let reading = shown.lines().find_map(|line| line.trim().strip_prefix("reads "));
    let failure = String::from_utf8_lossy(&output.stderr);
    let reading: u64 = reading.unwrap_or_else(|| panic!("{shown}{failure}")).parse().expect("seconds");
    assert!(reading >= (before.0 + SUSPENDED).as_secs(), "{reading} s, and {before:?} before");
}

#[test]
fn the_clock_runs_at_the_rate_of_the_monotonic_clock() {
    let (began, monotonic) = (HostInstant::now(), Instant::now());
    while monotonic.elapsed() < Duration::from_millis(50) {
        std::thread::yield_now();
    }
    assert!(began.elapsed() >= Duration::from_millis(50));
    assert_eq!(began.saturating_duration_since(HostInstant::now()), Duration::ZERO);
}
