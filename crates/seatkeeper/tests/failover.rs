//! What becomes of seats when Redis or PostgreSQL fails, on real servers: `docs/failover.md`, one module a failure.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test that cannot go on fails")]

mod house;

#[path = "invariants/support/mod.rs"]
mod support;

#[path = "http/until.rs"]
mod until;

// A node is a house of its own, over what the tests give it.
const TOPOLOGY: house::Topology = house::Topology::Embedded;

mod failover {
    mod catalogue;
    mod steady;
    mod support;
    mod trial;

    mod all_fall_silent;
    mod alone;
    mod capacities;
    mod clock_steps;
    mod clocks_apart;
    mod database_password;
    mod deployments;
    mod disk_full;
    mod fallback;
    mod faults;
    mod frozen_stores;
    mod half_alive;
    mod health;
    mod idle;
    mod invented_ids;
    mod lease;
    mod ledger_crashes;
    mod ledger_in_postgres;
    mod limits;
    mod lost_memory;
    mod network;
    mod one_side;
    mod partitions;
    mod password;
    mod plan_changes;
    mod promotions;
    mod restored_ledger;
    mod rolling_upgrade;
    mod several_nodes;
    mod standby;
    mod unseen_sessions;
    mod unserved;
    mod without_ledger;
    mod without_redis;
    mod wrong_time;
}
