//! The systemd unit.

use seatkeeper_server::Settings;

use crate::read;

/// The limits of a graceful stop beside `server.shutdown_timeout_seconds`: workers 10 s, drains 10 s, connections 5 s.
const REST_SECONDS: u64 = 25;

#[test]
fn the_unit_waits_longer_than_a_graceful_stop_may_take() {
    let unit = read("deploy/seatkeeper.service");
    let limit = unit.lines().find_map(|line| line.strip_prefix("TimeoutStopSec=")).expect("a limit");
    // One limit for requests, and another for writes of administrators.
    let stop = 2 * Settings::default().server.shutdown_timeout_seconds + REST_SECONDS;
    assert!(limit.parse::<u64>().expect("seconds") > stop, "{limit} s for a stop of {stop} s");
}
