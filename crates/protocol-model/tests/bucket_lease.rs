//! Walks through the faults of a bucket's service: with every rule in force, and without each rule.
//!
//! `SEATKEEPER_MODEL_FAULTS` is the number of faults that the whole walk tries together.
#![expect(clippy::print_stdout, reason = "prints the size of a walk, and the path to a broken promise")]

mod support;

use seatkeeper_protocol_model::service_promise::{FEW_EPOCHS, FREES, KEPT, ONE_HOLDER, SERVES};
use seatkeeper_protocol_model::{BucketRules, BucketService, Cut, Fault};

use stateright::Checker as _;

use support::{MORE_STATES_MIN, assert_broken, assert_kept, number_or, states_min, walk};

/// The default number of faults of the whole walk.
const FAULTS_MAX: u8 = 2;

const ALL: BucketRules = BucketRules::ALL;

/// Every lasting fault, except a bad network.
const CLEAR_CUTS: [Cut; 8] = [
    Cut::Ledger(0),
    Cut::Ledger(1),
    Cut::Postgres,
    Cut::Redis(0),
    Cut::Redis(1),
    Cut::Writes,
    Cut::Decade,
    Cut::Standstill,
];

/// Every fault except a bad network, in pairs.
const SERVICE: BucketService =
    BucketService { faults_max: FAULTS_MAX, faults: &Fault::ALL, cuts: &CLEAR_CUTS, rules: ALL };

/// Creates a walk with the given faults only.
fn only_by(faults: &'static [Fault], cuts: &'static [Cut], rules: BucketRules) -> BucketService {
    BucketService { faults, cuts, rules, ..SERVICE }
}

#[test]
fn faults_in_any_order_break_no_promise() {
    let faults_max = number_or("SEATKEEPER_MODEL_FAULTS", FAULTS_MAX);
    let states = if faults_max > FAULTS_MAX { MORE_STATES_MIN } else { states_min::TWO_FAULTS };
    assert_kept(BucketService { faults_max, ..SERVICE }, states);
}

#[test]
fn a_node_that_answers_without_the_ledger_shares_a_seat_with_the_other_side() {
    let rules = BucketRules { epoch_lease_ends: false, ..ALL };
    let partition: &[Cut] = &[Cut::Ledger(0), Cut::Redis(1)];
    assert_broken(&only_by(&[], partition, rules), ONE_HOLDER);
}

#[test]
fn a_redis_that_refuses_writes_and_counts_as_reachable_is_never_replaced() {
    let rules = BucketRules { reach_is_a_write: false, ..ALL };
    assert_broken(&only_by(&[], &[Cut::Writes], rules), SERVES);
}

#[test]
fn sessions_end_by_a_redis_that_refused_writes_if_neither_reach_nor_lease_tells() {
    let rules = BucketRules { reach_is_a_write: false, bucket_lease: false, ..ALL };
    assert_broken(&only_by(&[], &[Cut::Writes], rules), KEPT);
}

#[test]
fn sessions_end_when_both_stores_were_away_if_buckets_have_no_lease() {
    let rules = BucketRules { bucket_lease: false, ..ALL };
    assert_broken(&only_by(&[], &[Cut::Writes, Cut::Postgres], rules), KEPT);
}

#[test]
fn sessions_end_by_a_clock_that_jumps_if_buckets_have_no_lease() {
    let rules = BucketRules { bucket_lease: false, ..ALL };
    assert_broken(&only_by(&[Fault::Jump], &[], rules), KEPT);
}

#[test]
fn a_node_that_renews_the_bucket_without_an_epoch_lease_ends_sessions_of_others() {
    let rules = BucketRules { renewal_needs_epoch_lease: false, ..ALL };
    assert_broken(&BucketService { rules, ..SERVICE }, KEPT);
}

#[test]
fn sessions_that_keep_the_rest_of_their_ttl_end_after_a_rebuild() {
    let rules = BucketRules { rebuild_renews_ttl: false, ..ALL };
    assert_broken(&BucketService { rules, ..SERVICE }, KEPT);
}

#[test]
fn sessions_end_when_a_rebuild_finishes_long_after_its_fill() {
    let rules = BucketRules { finish_follows_fill: false, ..ALL };
    assert_broken(&BucketService { rules, ..SERVICE }, KEPT);
}

#[test]
fn nodes_that_read_the_identity_once_rebuild_against_each_other() {
    let rules = BucketRules { identity_is_read_again: false, ..ALL };
    let replica_comes: &[Fault] = &[Fault::Renamed];
    let one_connects_anew: &[Cut] = &[Cut::Redis(0)];
    assert_broken(&only_by(replica_comes, one_connects_anew, rules), FEW_EPOCHS);
    assert_broken(&only_by(replica_comes, one_connects_anew, rules), SERVES);
}

#[test]
fn a_bad_network_breaks_no_promise() {
    let alone = BucketService { faults_max: 1, ..only_by(&[], &[Cut::BadNetwork], ALL) };
    assert_kept(alone, states_min::BAD_NETWORK);
}

/// A rebuild over a bad network may fail at each node, and a failed rebuild costs an epoch.
#[test]
fn a_bad_network_beside_another_fault_breaks_no_promise_but_the_number_of_epochs() {
    let checker = walk(BucketService { cuts: &Cut::ALL, ..SERVICE });
    for promise in [ONE_HOLDER, KEPT, SERVES, FREES] {
        checker.assert_no_discovery(promise);
    }
    let states = checker.unique_state_count();
    assert!(states >= states_min::BAD_NETWORK_AND_FAULT, "the walk visited {states} states");
}

#[test]
fn a_bucket_goes_back_and_forth_over_a_bad_network_if_slow_surveys_close_a_breaker() {
    let rules = BucketRules { recovery_is_quick: false, ..ALL };
    assert_broken(&only_by(&[], &[Cut::BadNetwork], rules), FEW_EPOCHS);
}

#[test]
fn a_clock_that_is_believed_at_once_keeps_seats_for_a_decade() {
    let rules = BucketRules { clock_must_settle: false, ..ALL };
    assert_broken(&only_by(&[], &[Cut::Decade], rules), FREES);
}

#[test]
fn a_rebuild_that_begins_by_a_clock_that_has_just_jumped_keeps_seats_for_a_decade() {
    let rules = BucketRules { begin_checks_clock: false, ..ALL };
    assert_broken(&BucketService { rules, ..SERVICE }, FREES);
}

#[test]
fn sessions_end_after_an_outage_of_postgres_if_its_buckets_have_no_lease() {
    let rules = BucketRules { standby_lease: false, ..ALL };
    assert_broken(&only_by(&[], &[Cut::Writes, Cut::Postgres], rules), KEPT);
}

#[test]
fn sessions_end_by_a_clock_of_postgres_that_jumps_if_its_buckets_have_no_lease() {
    let rules = BucketRules { standby_lease: false, ..ALL };
    assert_broken(&only_by(&[Fault::PostgresJump], &[Cut::Writes], rules), KEPT);
}
