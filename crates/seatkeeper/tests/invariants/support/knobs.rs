//! How long the tests run, and from which seed.

use uuid::Uuid;

use crate::TOPOLOGY;

/// Rounds of the storm.
pub(crate) fn storm_rounds() -> u32 {
    u32::try_from(number("SEATKEEPER_STORM_ROUNDS").unwrap_or(alone_or_nodes(500, 100)))
        .expect("a number of rounds")
}

/// Rounds of racing for capacities.
pub(crate) fn race_rounds() -> u64 {
    number("SEATKEEPER_RACE_ROUNDS").unwrap_or(alone_or_nodes(1_000, 200))
}

/// Times that the server is killed in the middle of load.
pub(crate) fn kill_cycles() -> u64 {
    number("SEATKEEPER_KILL_CYCLES").unwrap_or(30)
}

/// Seconds of full load.
pub(crate) fn load_seconds() -> u64 {
    number("SEATKEEPER_LOAD_SECONDS").unwrap_or(alone_or_nodes(20, 8))
}

/// Steps in which ninety days of usage pass; most end with a window.
pub(crate) fn usage_steps() -> u64 {
    number("SEATKEEPER_USAGE_STEPS").unwrap_or(100)
}

/// How often each thing breaks beneath the nodes.
pub(crate) fn fault_cycles() -> u64 {
    number("SEATKEEPER_FAULT_CYCLES").unwrap_or(1)
}

/// Tests of faults fail as well if requests are refused for longer than was promised. For a machine that does nothing else:
/// durations on a busy one say nothing about the product.
pub(crate) fn lapses_are_bounded() -> bool {
    number("SEATKEEPER_FAULT_LAPSES_BOUNDED").is_some_and(|number| number > 0)
}

/// Sessions that live beside the storm while things break.
pub(crate) fn fault_sessions() -> u64 {
    number("SEATKEEPER_FAULT_SESSIONS").unwrap_or(100)
}

/// How often the ledger's server crashes beneath the nodes.
pub(crate) fn ledger_crashes() -> u64 {
    number("SEATKEEPER_FAULT_CYCLES").unwrap_or(3)
}

/// Sessions that fall silent at once.
pub(crate) fn silent_sessions() -> u64 {
    number("SEATKEEPER_SILENT_SESSIONS").unwrap_or(500)
}

/// For how long a node, or a store, is frozen: longer than any lease, and than a circuit breaker takes to open.
pub(crate) fn freeze_seconds() -> u64 {
    number("SEATKEEPER_FREEZE_SECONDS").unwrap_or(8)
}

/// Whether nodes remember plans for as long as they do by default.
pub(crate) fn plans_remembered_in_full() -> bool {
    number("SEATKEEPER_PLANS_REMEMBERED_IN_FULL").is_some_and(|number| number > 0)
}

/// What is random is drawn from this; printed, for a run that failed is to be run again.
pub(crate) fn seed() -> u64 {
    let seed = number("SEATKEEPER_SEED").unwrap_or_else(|| Uuid::new_v4().as_u64_pair().0);
    println!("SEATKEEPER_SEED={seed}");
    seed
}

/// Nodes that go by a Redis and a PostgreSQL on the same machine take longer for the same.
fn alone_or_nodes(alone: u64, nodes: u64) -> u64 {
    if TOPOLOGY.nodes() == 1 { alone } else { nodes }
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is `{text}`: want a number")))
}
