//! Counts of a server's commands.

use seatkeeper_testbed::redis::Redis;

/// Returns the number of calls of a command that a server has answered.
pub(crate) fn calls_of(redis: &Redis, command: &str) -> usize {
    let told: String = redis.ask(redis::cmd("INFO").arg("commandstats").take());
    let start = format!("cmdstat_{command}:calls=");
    let calls = told.lines().find_map(|line| line.strip_prefix(&start)?.split(',').next());
    calls.map_or(0, |calls| calls.parse().expect("a number"))
}
