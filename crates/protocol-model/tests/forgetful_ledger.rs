//! Walks through promotions of a lagging PostgreSQL standby: with both rules, and without each rule in
//! turn.
//!
//! `SEATKEEPER_MODEL_RAISES` is the number of raises in the whole walk.
#![expect(clippy::print_stdout, reason = "prints the size of a walk, and the path to a broken promise")]

mod support;

use seatkeeper_protocol_model::{AGREES, ForgetfulLedger, LedgerRules};

use support::{MORE_STATES_MIN, assert_broken, assert_kept, number_or, states_min};

/// The default number of raises of the whole walk.
const RAISES: u8 = 3;

const LEDGER: ForgetfulLedger =
    ForgetfulLedger { promotions: 2, losses: 1, raises: RAISES, rules: LedgerRules::ALL };

#[test]
fn a_ledger_that_forgets_leaves_redis_in_agreement() {
    let raises = number_or("SEATKEEPER_MODEL_RAISES", RAISES);
    let states = if raises > RAISES { MORE_STATES_MIN } else { states_min::FORGETFUL_LEDGER };
    assert_kept(ForgetfulLedger { raises, ..LEDGER }, states);
}

#[test]
fn an_epoch_that_is_given_again_lets_a_forgotten_state_serve() {
    let rules = LedgerRules { epoch_has_word: false, ..LedgerRules::ALL };
    assert_broken(&ForgetfulLedger { rules, ..LEDGER }, AGREES);
}

#[test]
fn a_ledger_that_nobody_tells_from_the_one_before_leaves_a_forgotten_state() {
    let rules = LedgerRules { row_names_ledger: false, ..LedgerRules::ALL };
    assert_broken(&ForgetfulLedger { rules, ..LEDGER }, AGREES);
}
