//! Walks through every partition of three nodes, the ledger and Redis: with every rule, and without each one.
#![expect(clippy::print_stdout, reason = "prints the size of a walk, and the path to a broken promise")]

mod support;

use seatkeeper_protocol_model::{Cluster, LeaseRules, NO_OLD_ANSWER, Partition};

use support::{assert_broken, assert_kept, states_min};

/// Four ways change while an epoch is raised.
const PARTITION: Partition =
    Partition { epochs: 2, changes: 4, cluster: Cluster::Constant, rules: LeaseRules::ALL };

/// One of two nodes starts during the walk, out of reach of Redis. A link changes, or a reply is lost.
const NEWCOMER: Partition =
    Partition { cluster: Cluster::WithNewcomer { reaches_redis: false }, changes: 1, ..PARTITION };

/// Two nodes go silent and come back.
const SILENCES: Partition = Partition { cluster: Cluster::Changing, changes: 2, ..PARTITION };

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
fn an_announcement_that_ends_before_the_leases_is_forgotten() {
    assert_breaks(LeaseRules { announcement_lasts: false, ..LeaseRules::ALL });
}

#[test]
fn a_lapsed_lease_that_other_nodes_give_back_is_of_an_old_epoch() {
    assert_breaks(LeaseRules { ledger_alone_restores: false, ..LeaseRules::ALL });
}

#[test]
fn a_rebuild_that_does_not_wait_meets_a_lease() {
    assert_breaks(LeaseRules { rebuild_waits: false, ..LeaseRules::ALL });
}

#[test]
fn no_node_answers_by_an_old_epoch_while_a_node_starts() {
    assert_kept(NEWCOMER, states_min::NEWCOMER);
}

#[test]
fn no_node_answers_by_an_old_epoch_while_a_node_starts_that_reaches_redis() {
    let cluster = Cluster::WithNewcomer { reaches_redis: true };
    assert_kept(Partition { cluster, ..NEWCOMER }, states_min::NEWCOMER_WITH_REDIS);
}

#[test]
fn no_node_answers_by_an_old_epoch_while_nodes_go_silent_and_are_forgotten() {
    assert_kept(Partition { changes: 1, ..SILENCES }, states_min::SILENCES);
}

#[test]
fn a_newcomer_that_no_row_names_takes_over_from_nodes_that_vouch_for_each_other() {
    let rules = LeaseRules { raiser_is_named: false, ..LeaseRules::ALL };
    assert_broken(&Partition { rules, ..NEWCOMER }, NO_OLD_ANSWER);
}

#[test]
fn a_silent_node_that_is_forgotten_without_a_word_on_the_roll_still_answers() {
    let rules = LeaseRules { forgetter_has_told: false, ..LeaseRules::ALL };
    assert_broken(&Partition { rules, ..NEWCOMER }, NO_OLD_ANSWER);
}

#[test]
fn a_name_that_is_dropped_before_the_row_tells_so_is_missed() {
    let rules = LeaseRules { names_on_record_count: false, ..LeaseRules::ALL };
    assert_broken(&Partition { rules, ..SILENCES }, NO_OLD_ANSWER);
}
