//! Walks through the assignment of a home among three regions: with every rule, and without each rule in turn.
#![expect(clippy::print_stdout, reason = "prints the size of a walk, and the path to a broken promise")]

mod support;

use seatkeeper_protocol_model::{HomeRules, Homes, ONE_HOME};

use support::{assert_broken, assert_kept, states_min};

const HOMES: Homes = Homes { changes: 2, rules: HomeRules::ALL };

#[test]
fn at_most_one_region_admits() {
    assert_kept(HOMES, states_min::HOMES);
}

#[test]
fn the_last_of_two_assignments_makes_a_second_home() {
    let rules = HomeRules { compare_and_swap: false, ..HomeRules::ALL };
    assert_broken(&Homes { rules, ..HOMES }, ONE_HOME);
}

#[test]
fn an_anchor_that_answers_before_the_disk_forgets_a_home() {
    let rules = HomeRules { disk_before_answer: false, ..HomeRules::ALL };
    assert_broken(&Homes { rules, ..HOMES }, ONE_HOME);
}

#[test]
fn a_region_that_does_not_wait_for_the_anchor_admits_beside_the_home() {
    let rules = HomeRules { ledger_says_home: false, ..HomeRules::ALL };
    assert_broken(&Homes { rules, ..HOMES }, ONE_HOME);
}

#[test]
fn a_region_that_assigns_without_being_the_anchor_makes_a_second_home() {
    let rules = HomeRules { anchor_alone_assigns: false, ..HomeRules::ALL };
    assert_broken(&Homes { rules, ..HOMES }, ONE_HOME);
}

#[test]
fn a_second_anchor_makes_a_second_home() {
    let rules = HomeRules { anchor_is_fixed: false, ..HomeRules::ALL };
    assert_broken(&Homes { rules, ..HOMES }, ONE_HOME);
}
