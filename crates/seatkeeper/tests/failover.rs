//! Failures of Redis, PostgreSQL, nodes and clocks beneath real servers, as described in `docs/failover.md`:
//! a module for each failure.
#![allow(clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a failed test panics")]

mod harness;

#[path = "invariants/support/mod.rs"]
mod support;

#[path = "http/until.rs"]
mod until;

// A node is a `Harness` with extra settings for its stores.
const TOPOLOGY: harness::Topology = harness::Topology::Embedded;

mod failover {
    mod catalogue;
    mod scene_again;
    mod steady;
    mod support;
    mod tally;
    mod trial;

    mod admin_writes;
    mod all_fall_silent;
    mod alone;
    mod broken_off;
    mod capacities;
    mod clock_steps;
    mod clocks_apart;
    mod database_password;
    mod deployments;
    mod disk_full;
    mod fallback;
    mod faults;
    mod flapping;
    mod frozen_stores;
    mod frozen_time;
    mod groups;
    mod half_alive;
    mod health;
    mod idle;
    mod interference;
    mod invented_ids;
    mod lease;
    mod ledger_crashes;
    mod ledger_in_postgres;
    mod limits;
    mod lost_license;
    mod lost_memory;
    mod network;
    mod newcomers;
    mod old_primary;
    mod one_side;
    mod partitions;
    mod password;
    mod plan_changes;
    mod postgres_alone;
    mod promotions;
    mod renewed_by_ledger;
    mod restored_ledger;
    mod retention;
    mod rolling_upgrade;
    mod several_nodes;
    mod standby;
    mod subscription_ends;
    mod told_elsewhere;
    mod unreadable_entry;
    mod unseen_sessions;
    mod unserved;
    mod without_ledger;
    mod without_redis;
    mod wrong_time;
}
