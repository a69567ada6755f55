//! Walks through the adoption of a lost region: with every rule, and without each rule in turn.
#![expect(clippy::print_stdout, reason = "prints the size of a walk, and the path to a broken promise")]

mod support;

use seatkeeper_protocol_model::{AdoptionRules, HOME_IS_THERE, ONE_HOLDS, RegionAdoption};

use support::{assert_broken, assert_kept, states_min};

const ADOPTION: RegionAdoption = RegionAdoption { moves: 4, rules: AdoptionRules::ALL };

#[test]
fn at_most_one_region_has_sessions_or_admits() {
    assert_kept(ADOPTION, states_min::REGION_ADOPTION);
}

#[test]
fn a_region_that_lives_admits_beside_its_successor() {
    let rules = AdoptionRules { lost_is_dead: false, ..AdoptionRules::ALL };
    assert_broken(&RegionAdoption { rules, ..ADOPTION }, ONE_HOLDS);
}

#[test]
fn a_late_handover_of_the_lost_region_makes_a_second_home() {
    let rules = AdoptionRules { refuses_lost: false, ..AdoptionRules::ALL };
    assert_broken(&RegionAdoption { rules, ..ADOPTION }, ONE_HOLDS);
}

#[test]
fn a_home_that_moved_after_the_backup_is_adopted_without_a_question() {
    let rules = AdoptionRules { gathers_homes: false, ..AdoptionRules::ALL };
    assert_broken(&RegionAdoption { rules, ..ADOPTION }, ONE_HOLDS);
}

#[test]
fn a_home_arrives_in_the_third_region_after_its_answer() {
    let rules = AdoptionRules { tells_first: false, ..AdoptionRules::ALL };
    assert_broken(&RegionAdoption { rules, ..ADOPTION }, ONE_HOLDS);
}

#[test]
fn a_session_that_the_backup_lacks_lives_beside_an_admission() {
    let rules = AdoptionRules { silence: false, ..AdoptionRules::ALL };
    assert_broken(&RegionAdoption { rules, ..ADOPTION }, ONE_HOLDS);
}

#[test]
fn a_session_of_a_home_that_reached_the_lost_region_lives_beside_an_admission() {
    let rules = AdoptionRules { arrivals_are_silent: false, ..AdoptionRules::ALL };
    assert_broken(&RegionAdoption { rules, ..ADOPTION }, ONE_HOLDS);
}

#[test]
fn a_session_of_a_subscriber_whom_the_backup_lacks_lives_beside_an_admission() {
    let rules = AdoptionRules { assigns_silently: false, ..AdoptionRules::ALL };
    assert_broken(&RegionAdoption { rules, ..ADOPTION }, ONE_HOLDS);
}

#[test]
fn a_late_answer_of_the_lost_region_loses_a_home() {
    let rules = AdoptionRules { answers_name_target: false, ..AdoptionRules::ALL };
    assert_broken(&RegionAdoption { rules, ..ADOPTION }, HOME_IS_THERE);
}
