//! Walks through the moves of a home among three regions: with every rule, and without each rule in turn.
#![expect(clippy::print_stdout, reason = "prints the size of a walk, and the path to a broken promise")]

mod support;

use seatkeeper_protocol_model::{HomeMoves, MoveRules, ONE_ADMITS};

use support::{assert_broken, assert_kept, states_min};

const MOVES: HomeMoves = HomeMoves { moves: 3, rules: MoveRules::ALL };

#[test]
fn at_most_one_region_may_admit() {
    assert_kept(MOVES, states_min::HOME_MOVES);
}

#[test]
fn a_repeated_message_counts_again_without_the_version() {
    let rules = MoveRules { version_check: false, ..MoveRules::ALL };
    assert_broken(&HomeMoves { rules, ..MOVES }, ONE_ADMITS);
}

#[test]
fn a_pool_that_is_open_during_the_handover_admits_beside_the_target() {
    let rules = MoveRules { close_before_handover: false, ..MoveRules::ALL };
    assert_broken(&HomeMoves { rules, ..MOVES }, ONE_ADMITS);
}

#[test]
fn a_request_from_before_the_move_opens_a_pool_that_was_only_removed() {
    let rules = MoveRules { closed_pool_stays: false, ..MoveRules::ALL };
    assert_broken(&HomeMoves { rules, ..MOVES }, ONE_ADMITS);
}

#[test]
fn a_cached_home_opens_the_pool_after_the_move() {
    let rules = MoveRules { ledger_opens: false, ..MoveRules::ALL };
    assert_broken(&HomeMoves { rules, ..MOVES }, ONE_ADMITS);
}

#[test]
fn a_crash_forgets_a_move_that_is_not_on_disk() {
    let rules = MoveRules { move_on_disk: false, ..MoveRules::ALL };
    assert_broken(&HomeMoves { rules, ..MOVES }, ONE_ADMITS);
}
