//! Walks through every partition of three nodes, the ledger and Redis, and through each with a rule taken away.
#![expect(
    clippy::print_stdout,
    reason = "how large a walk was, and how the promise is broken, is worth seeing"
)]

use std::time::{Duration, Instant};

use seatkeeper_protocol_model::{LeaseRules, NO_OLD_ANSWER, Partition};
use stateright::{Checker, HasDiscoveries, Model};

/// A walk takes some seconds; a machine that is busy with other things may take its time.
const WALK_MAX: Duration = Duration::from_secs(600);

const THREADS: usize = 2;

/// Four ways change while an epoch is raised.
const PARTITION: Partition = Partition { epochs: 2, changes: 4, rules: LeaseRules::ALL };

fn is_broken(rules: LeaseRules) {
    is_broken_by(Partition { rules, ..PARTITION });
}

fn is_broken_by(model: Partition) {
    let until = HasDiscoveries::AllOf([NO_OLD_ANSWER].into());
    let checker = model.checker().threads(THREADS).timeout(WALK_MAX).finish_when(until).spawn_bfs().join();
    let path = checker.assert_any_discovery(NO_OLD_ANSWER);
    println!("broken by:\n{path}");
}

#[test]
fn no_node_answers_by_an_old_epoch_in_any_partition() {
    let began = Instant::now();
    let checker = PARTITION.checker().threads(THREADS).timeout(WALK_MAX).spawn_bfs().join();
    println!("{} states in {:?}", checker.unique_state_count(), began.elapsed());
    assert!(checker.is_done(), "the walk was cut short");
    checker.assert_properties();
}

#[test]
fn a_failed_reading_that_counts_as_a_reading_lets_two_sides_answer() {
    is_broken(LeaseRules { every_node_vouches: false, ..LeaseRules::ALL });
}

#[test]
fn words_that_do_not_grow_old_outlive_a_raise() {
    // All lose the ledger, and one of them Redis; then that one reaches the ledger again.
    let rules = LeaseRules { words_grow_old: false, ..LeaseRules::ALL };
    is_broken_by(Partition { changes: 5, rules, ..PARTITION });
}

#[test]
fn a_raise_that_is_not_announced_is_not_heard_of() {
    is_broken(LeaseRules { raise_is_announced: false, ..LeaseRules::ALL });
}

#[test]
fn a_lapsed_lease_that_other_nodes_give_back_is_of_an_old_epoch() {
    is_broken(LeaseRules { ledger_alone_restores: false, ..LeaseRules::ALL });
}

#[test]
fn a_rebuild_that_does_not_wait_meets_a_lease() {
    is_broken(LeaseRules { rebuild_waits: false, ..LeaseRules::ALL });
}
