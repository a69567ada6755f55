//! Several regions on one machine, each with stores of its own, and a network between every two.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a failed test panics, and prints its seed"
)]
#![allow(clippy::needless_pass_by_value, reason = "callers pass JSON literals")]

mod harness;

#[path = "regions/administered.rs"]
mod administered;
#[path = "regions/adoption.rs"]
mod adoption;
#[path = "regions/adoption_halted.rs"]
mod adoption_halted;
#[path = "regions/adoption_large.rs"]
mod adoption_large;
#[path = "regions/adoption_twice.rs"]
mod adoption_twice;
#[path = "regions/adoption_unknown.rs"]
mod adoption_unknown;
#[path = "regions/agreement.rs"]
mod agreement;
#[path = "regions/arrivals.rs"]
mod arrivals;
#[path = "regions/cuts.rs"]
mod cuts;
#[path = "regions/deployments.rs"]
mod deployments;
#[path = "regions/forgotten.rs"]
mod forgotten;
#[path = "regions/former_homes.rs"]
mod former_homes;
#[path = "regions/forwarding.rs"]
mod forwarding;
#[path = "regions/groups.rs"]
mod groups;
#[path = "regions/heartbeats.rs"]
mod heartbeats;
#[path = "regions/keys.rs"]
mod keys;
#[path = "regions/killed.rs"]
mod killed;
#[path = "regions/lies.rs"]
mod lies;
#[path = "regions/moves.rs"]
mod moves;
#[path = "regions/processes.rs"]
mod processes;
#[path = "regions/repeats.rs"]
mod repeats;
#[path = "regions/silence.rs"]
mod silence;
#[path = "regions/storm.rs"]
mod storm;
#[path = "regions/storm_rounds.rs"]
mod storm_rounds;
#[path = "regions/without_home.rs"]
mod without_home;
#[path = "regions/world.rs"]
mod world;

const TOPOLOGY: harness::Topology = harness::Topology::Embedded;
