//! Each broken promise is found, and behaviour within the promises is not reported.

use std::sync::Arc;
use std::time::Duration;

use super::{Checker, Occupancy, RequestSpan, What};
use crate::{Denial, Grant, How, Moment};

const TTL_SECONDS: u64 = 10;

fn name(text: &str) -> Arc<str> {
    Arc::from(text)
}

fn asked(sent_millis: u64, answered_millis: u64) -> RequestSpan {
    RequestSpan { sent: Moment::from_millis(sent_millis), answered: Moment::from_millis(answered_millis) }
}

/// Returns the grant of one of `total` seats, with `used` seats taken.
fn grant(session: &str, used: u32, total: u32) -> Grant {
    Grant {
        session_id: name(session),
        seats_used: used,
        seats_remaining: Some(total - used),
        seats_total: total,
        expires_in_seconds: TTL_SECONDS,
        heartbeat_interval_seconds: 3,
        evicted: Vec::new(),
        how: How::Acquired,
    }
}

fn denial(total: u32) -> Denial {
    Denial {
        error: "All license seats are currently in use".to_owned(),
        seats_available: 0,
        seats_total: total,
        retry_after_seconds: 4,
        retry_after_header: Some(4),
    }
}

/// Returns a checker of a license of one seat, held by Ann since 10 ms (request sent at 0).
fn held_by_ann() -> Checker {
    let mut checker = Checker::new("test");
    checker.granted(&name("ann"), &grant("a", 1, 1), asked(0, 10));
    checker
}

fn seen(checker: &Checker) -> Vec<&What> {
    checker.violations().first().iter().map(|violation| &violation.what).collect()
}

#[test]
fn a_grant_beside_a_seat_that_is_surely_held_is_above_the_limit() {
    let mut checker = held_by_ann();
    checker.granted(&name("bob"), &grant("b", 1, 1), asked(11, 20));
    assert!(matches!(seen(&checker)[..], [What::AboveLimit { held: 2, seats_total: 1 }]));
}

#[test]
fn a_seat_whose_release_was_sent_may_be_given_away_before_the_release_is_answered() {
    let mut checker = held_by_ann();
    checker.releasing(&name("a"));
    checker.granted(&name("bob"), &grant("b", 1, 1), asked(11, 20));
    assert!(seen(&checker).is_empty());
}

#[test]
fn a_seat_whose_ttl_is_over_may_be_given_away() {
    let mut checker = held_by_ann();
    checker.granted(&name("bob"), &grant("b", 1, 1), asked(9_990, 10_000));
    assert!(seen(&checker).is_empty());
}

#[test]
fn a_seat_may_not_be_given_away_shortly_before_its_ttl_is_over() {
    let mut checker = held_by_ann();
    checker.granted(&name("bob"), &grant("b", 1, 1), asked(9_900, 9_980));
    assert!(matches!(seen(&checker)[..], [What::AboveLimit { .. }]));
}

#[test]
fn a_renewal_counts_from_when_it_was_sent() {
    let mut checker = held_by_ann();
    checker.renewed(&name("ann"), &name("a"), TTL_SECONDS, asked(5_000, 9_000));
    checker.granted(&name("bob"), &grant("b", 1, 1), asked(10_000, 14_900));
    assert!(matches!(seen(&checker)[..], [What::AboveLimit { .. }]));
    let mut checker = held_by_ann();
    checker.renewed(&name("ann"), &name("a"), TTL_SECONDS, asked(5_000, 9_000));
    checker.granted(&name("bob"), &grant("b", 1, 1), asked(10_000, 15_000));
    assert!(seen(&checker).is_empty());
}

#[test]
fn a_session_that_lives_on_after_another_took_its_seat_is_above_the_limit() {
    let mut checker = held_by_ann();
    checker.granted(&name("bob"), &grant("b", 1, 1), asked(10_000, 10_010));
    checker.renewed(&name("ann"), &name("a"), TTL_SECONDS, asked(10_020, 10_030));
    assert!(matches!(seen(&checker)[..], [What::AboveLimit { held: 2, .. }]));
}

#[test]
fn a_grant_that_says_more_used_than_there_are_is_seen() {
    let mut checker = Checker::new("test");
    let above = Grant { seats_used: 2, seats_remaining: Some(0), ..grant("a", 1, 1) };
    checker.granted(&name("ann"), &above, asked(0, 1));
    assert!(matches!(seen(&checker)[..], [What::CountsWrong { used: 2, remaining: Some(0), total: 1 }]));
}

#[test]
fn a_session_resumed_under_a_lowered_limit_is_no_violation() {
    let mut checker = Checker::new("test");
    checker.granted(&name("ann"), &grant("a", 1, 2), asked(0, 1));
    checker.granted(&name("bob"), &grant("b", 2, 2), asked(2, 3));
    let resumed = Grant { how: How::Resumed, seats_used: 2, seats_remaining: Some(0), ..grant("b", 1, 1) };
    checker.granted(&name("bob"), &resumed, asked(4, 5));
    assert!(seen(&checker).is_empty());
}

#[test]
fn a_machine_that_is_given_a_second_session_is_seen() {
    let mut checker = Checker::new("test");
    checker.granted(&name("ann"), &grant("a1", 1, 5), asked(0, 10));
    checker.granted(&name("ann"), &grant("a2", 2, 5), asked(5, 12));
    assert!(matches!(seen(&checker)[..], [What::SecondSeat { .. }]));
}

#[test]
fn a_machine_that_is_given_its_own_session_again_is_no_violation() {
    let mut checker = held_by_ann();
    let resumed = Grant { how: How::Resumed, ..grant("a", 1, 1) };
    checker.granted(&name("ann"), &resumed, asked(20, 30));
    checker.denied(&name("bob"), &denial(1), asked(20, 30));
    assert!(seen(&checker).is_empty());
}

#[test]
fn a_holder_that_is_told_full_is_seen() {
    let mut checker = held_by_ann();
    checker.denied(&name("ann"), &denial(1), asked(20, 30));
    assert!(matches!(seen(&checker)[..], [What::HolderDenied { .. }]));
}

#[test]
fn a_denial_that_was_decided_before_a_parallel_grant_is_no_violation() {
    let mut checker = held_by_ann();
    checker.denied(&name("ann"), &denial(1), asked(5, 15));
    assert!(seen(&checker).is_empty());
}

#[test]
fn an_end_before_the_ttl_is_over_is_seen_and_one_after_it_is_not() {
    let mut checker = held_by_ann();
    checker.lost(&name("a"), asked(9_000, 9_001));
    assert!(matches!(seen(&checker)[..], [What::FalseEnd { .. }]));
    let mut checker = held_by_ann();
    checker.lost(&name("a"), asked(9_980, 10_001));
    assert!(seen(&checker).is_empty());
}

#[test]
fn a_release_that_finds_nothing_before_the_ttl_is_over_is_seen() {
    let mut checker = held_by_ann();
    let until = checker.releasing(&name("a"));
    checker.release_missed(&name("a"), until, asked(20, 30));
    assert!(matches!(seen(&checker)[..], [What::FalseEnd { .. }]));
}

#[test]
fn a_denial_that_contradicts_itself_is_seen() {
    for wrong in [
        Denial { seats_available: 1, ..denial(1) },
        Denial { retry_after_header: None, ..denial(1) },
        Denial { retry_after_header: Some(5), ..denial(1) },
        Denial { error: "no".to_owned(), ..denial(1) },
    ] {
        let mut checker = Checker::new("test");
        checker.denied(&name("ann"), &wrong, asked(0, 1));
        assert!(matches!(seen(&checker)[..], [What::RefusalImproper { .. }]));
    }
}

#[test]
fn many_violations_are_counted_and_the_first_kept() {
    let mut checker = held_by_ann();
    for _ in 0..1_000 {
        checker.denied(&name("ann"), &denial(1), asked(20, 30));
    }
    assert_eq!(checker.violations().count(), 1_000);
    assert_eq!(checker.violations().first().len(), 100);
}

#[test]
fn whoever_is_asking_may_hold_a_seat_and_so_may_who_was_answered_until_its_ttl_is_over() {
    let (ann, bob) = (name("ann"), name("bob"));
    let mut occupancy = Occupancy::default();
    occupancy.asking(&ann);
    assert_eq!(occupancy.others_during(&bob, asked(0, 1)), 1);
    occupancy.lives(&ann, TTL_SECONDS, Moment::from_millis(5));
    assert_eq!(occupancy.others_during(&bob, asked(9_000, 9_001)), 1);
    assert_eq!(occupancy.others_during(&bob, asked(12_000, 12_001)), 0);
    assert_eq!(occupancy.others_during(&ann, asked(0, 1)), 0);
}

#[test]
fn a_seat_that_was_released_while_a_newcomer_asked_may_still_have_been_taken_when_it_was_denied() {
    let (ann, bob) = (name("ann"), name("bob"));
    let mut occupancy = Occupancy::default();
    occupancy.asking(&ann);
    occupancy.lives(&ann, TTL_SECONDS, Moment::from_millis(5));
    occupancy.gone(&ann, Moment::from_millis(20));
    assert_eq!(occupancy.others_during(&bob, asked(10, 30)), 1);
    assert_eq!(occupancy.others_during(&bob, asked(20, 30)), 0);
}

#[test]
fn an_abandoned_request_may_take_a_seat_later_even_past_a_release() {
    let (ann, bob) = (name("ann"), name("bob"));
    let mut occupancy = Occupancy::default();
    occupancy.asking(&ann);
    occupancy.abandoned(&ann, Duration::from_secs(TTL_SECONDS), Moment::from_millis(5));
    occupancy.gone(&ann, Moment::from_millis(20));
    assert_eq!(occupancy.others_during(&bob, asked(15_000, 15_001)), 1);
    assert_eq!(occupancy.others_during(&bob, asked(20_000, 20_001)), 0);
}
