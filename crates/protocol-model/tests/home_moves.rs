//! Walks through the moves of a home among three regions: with every rule, and without each rule in turn.
#![expect(clippy::print_stdout, reason = "prints the size of a walk, and the path to a broken promise")]

mod support;

use seatkeeper_protocol_model::{HomeMoves, MoveRules, ONE_ADMITS};

use support::{MORE_STATES_MIN, assert_broken, assert_kept, number_or, states_min};

/// The default number of moves of the whole walk.
const COUNT: u8 = 2;

const MOVES: HomeMoves = HomeMoves { moves: COUNT, rules: MoveRules::ALL };

#[test]
fn at_most_one_region_may_admit() {
    let moves = number_or("SEATKEEPER_MODEL_MOVES", COUNT);
    let states = if moves > COUNT { MORE_STATES_MIN } else { states_min::HOME_MOVES };
    assert_kept(HomeMoves { moves, ..MOVES }, states);
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

#[test]
fn an_anchor_that_believes_every_teller_makes_a_second_home() {
    let rules = MoveRules { home_confirms: false, ..MoveRules::ALL };
    assert_broken(&HomeMoves { rules, ..MOVES }, ONE_ADMITS);
}

#[test]
fn a_liar_hands_over_a_home_that_the_anchor_has_elsewhere() {
    let rules = MoveRules { anchor_is_asked: false, ..MoveRules::ALL };
    assert_broken(&HomeMoves { rules, ..MOVES }, ONE_ADMITS);
}

#[test]
fn a_stolen_key_hands_over_a_home_that_does_not_move() {
    let rules = MoveRules { source_is_asked: false, ..MoveRules::ALL };
    assert_broken(&HomeMoves { rules, ..MOVES }, ONE_ADMITS);
}
