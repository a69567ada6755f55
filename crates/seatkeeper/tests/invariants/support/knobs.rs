//! Length and seed of the tests, from environment variables. A new knob is a function with its default.

use uuid::Uuid;

use crate::TOPOLOGY;

/// Rounds of a storm.
pub(crate) fn storm_rounds() -> u32 {
    u32::try_from(number("SEATKEEPER_STORM_ROUNDS").unwrap_or(alone_or_nodes(500, 100)))
        .expect("a number of rounds")
}

/// Rounds of racing requests for capacities.
pub(crate) fn race_rounds() -> u64 {
    number("SEATKEEPER_RACE_ROUNDS").unwrap_or(alone_or_nodes(1_000, 200))
}

/// Number of kills under load.
pub(crate) fn kill_cycles() -> u64 {
    number("SEATKEEPER_KILL_CYCLES").unwrap_or(30)
}

/// Seconds of full load.
pub(crate) fn load_seconds() -> u64 {
    number("SEATKEEPER_LOAD_SECONDS").unwrap_or(alone_or_nodes(20, 8))
}

/// Steps into which ninety days of usage are divided. Most steps end with a window.
pub(crate) fn usage_steps() -> u64 {
    number("SEATKEEPER_USAGE_STEPS").unwrap_or(100)
}

/// Number of times that each fault is injected beneath the nodes.
pub(crate) fn fault_cycles() -> u64 {
    number("SEATKEEPER_FAULT_CYCLES").unwrap_or(1)
}

/// Returns true if tests of faults also bound the length of an outage. Meaningful only on an otherwise idle
/// machine: timings on a busy machine say nothing about the product.
pub(crate) fn lapses_are_bounded() -> bool {
    number("SEATKEEPER_FAULT_LAPSES_BOUNDED").is_some_and(|number| number > 0)
}

/// Number of concurrent storms. Four storms keep two cores busy in a debug build; with more, servers stand still for seconds.
pub(crate) fn storms_at_once() -> usize {
    usize::try_from(number("SEATKEEPER_STORMS_AT_ONCE").unwrap_or(4)).expect("a number of storms")
}

/// The longest rest of a client of a storm of faults between two requests, in milliseconds. Most of the processor time of a
/// storm is for its requests.
pub(crate) fn rest_millis_max() -> u64 {
    number("SEATKEEPER_FAULT_REST_MILLIS").unwrap_or(1_200)
}

/// Sessions held beside the storm during faults.
pub(crate) fn fault_sessions() -> u64 {
    number("SEATKEEPER_FAULT_SESSIONS").unwrap_or(100)
}

/// Number of crashes of the ledger's database server.
pub(crate) fn ledger_crashes() -> u64 {
    number("SEATKEEPER_FAULT_CYCLES").unwrap_or(3)
}

/// Sessions that fall silent at once.
pub(crate) fn silent_sessions() -> u64 {
    number("SEATKEEPER_SILENT_SESSIONS").unwrap_or(500)
}

/// Seconds that a node or a store is frozen or cut off: longer than any lease, than a circuit breaker takes to
/// open, and than a session without heartbeats lasts.
pub(crate) fn freeze_seconds() -> u64 {
    number("SEATKEEPER_FREEZE_SECONDS").unwrap_or(27)
}

/// Returns true if nodes cache plans for the default time.
pub(crate) fn plans_remembered_in_full() -> bool {
    number("SEATKEEPER_PLANS_REMEMBERED_IN_FULL").is_some_and(|number| number > 0)
}

/// Returns the seed of the random choices, and prints it, so that a failed run can be repeated.
pub(crate) fn seed() -> u64 {
    let seed = number("SEATKEEPER_SEED").unwrap_or_else(|| Uuid::new_v4().as_u64_pair().0);
    println!("SEATKEEPER_SEED={seed}");
    seed
}

/// Several nodes with Redis and PostgreSQL on one machine are slower than the embedded server.
fn alone_or_nodes(alone: u64, nodes: u64) -> u64 {
    if TOPOLOGY.nodes() == 1 { alone } else { nodes }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`: want a number")))
}
