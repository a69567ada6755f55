//! Walks through every partition of three nodes, the ledger and Redis: with every rule, and without each one.
#![expect(clippy::print_stdout, reason = "prints the size of a walk, and the path to a broken promise")]

mod support;

use seatkeeper_protocol_model::{LeaseRules, NO_OLD_ANSWER, Partition};

use support::{assert_broken, assert_kept, states_min};

/// Four ways change while an epoch is raised.
const PARTITION: Partition = Partition { epochs: 2, changes: 4, rules: LeaseRules::ALL };

fn assert_breaks(rules: LeaseRules) {
    assert_broken(&Partition { rules, ..PARTITION }, NO_OLD_ANSWER);
}

#[test]
fn no_node_answers_by_an_old_epoch_in_any_partition() {
    assert_kept(PARTITION, states_min::PARTITION);
}

#[test]
fn a_failed_reading_that_counts_as_a_reading_lets_two_sides_answer() {
    assert_breaks(LeaseRules { every_node_vouches: false, ..LeaseRules::ALL });
}

#[test]
fn words_that_do_not_grow_old_outlive_a_raise() {
    // Every node loses the ledger, and a node also loses Redis. The node without Redis reaches the ledger
    // again.
    let rules = LeaseRules { words_grow_old: false, ..LeaseRules::ALL };
    assert_broken(&Partition { changes: 5, rules, ..PARTITION }, NO_OLD_ANSWER);
}

#[test]
fn a_raise_that_is_not_announced_is_not_heard_of() {
    assert_breaks(LeaseRules { raise_is_announced: false, ..LeaseRules::ALL });
}

#[test]
fn a_lapsed_lease_that_other_nodes_give_back_is_of_an_old_epoch() {
    assert_breaks(LeaseRules { ledger_alone_restores: false, ..LeaseRules::ALL });
}

#[test]
fn a_rebuild_that_does_not_wait_meets_a_lease() {
    assert_breaks(LeaseRules { rebuild_waits: false, ..LeaseRules::ALL });
}
