//! The verdict finds each broken promise, and gives the server the benefit of the doubt.

use std::sync::Arc;

use super::{RequestSpan, Witness};
use crate::{Grant, How, Moment, What};

const TTL_SECONDS: u64 = 10;

fn name(text: &str) -> Arc<str> {
    Arc::from(text)
}

fn asked(sent_millis: u64, answered_millis: u64) -> RequestSpan {
    RequestSpan { sent: Moment::from_millis(sent_millis), answered: Moment::from_millis(answered_millis) }
}

/// Returns a device's grant of one of `total` seats, with `used` seats taken afterwards.
fn grant(session: &str, used: u32, total: u32, evicted: &[&str]) -> Grant {
    Grant {
        session_id: name(session),
        seats_used: used,
        seats_remaining: None,
        seats_total: total,
        evicted: evicted.iter().copied().map(name).collect(),
        expires_in_seconds: TTL_SECONDS,
        heartbeat_interval_seconds: 3,
        how: How::Acquired,
    }
}

/// Returns a witness of a pool of two seats: Ann was admitted by 10 ms, Bob by 30 ms.
fn ann_and_bob() -> Witness {
    let mut witness = Witness::new("test");
    witness.granted(&name("ann"), &grant("a", 1, 2, &[]), None, asked(0, 10));
    witness.granted(&name("bob"), &grant("b", 2, 2, &[]), None, asked(20, 30));
    witness
}

fn renewed(witness: &mut Witness, holder: &str, session: &str, asked: RequestSpan) {
    witness.renewed(&name(holder), &name(session), TTL_SECONDS, asked);
}

#[track_caller]
fn sees(witness: Witness, wanted: impl Fn(&What) -> bool) {
    let verdict = witness.verdict();
    let told: Vec<_> = verdict.first().iter().map(ToString::to_string).collect();
    assert!(verdict.count() == 1 && wanted(&verdict.first()[0].what), "{told:?}");
}

#[track_caller]
fn sees_nothing(witness: Witness) {
    let verdict = witness.verdict();
    let told: Vec<_> = verdict.first().iter().map(ToString::to_string).collect();
    assert_eq!(verdict.count(), 0, "{told:?}");
}

#[test]
fn an_admission_beside_sessions_that_were_live_before_and_after_it_is_above_the_limit() {
    let mut witness = ann_and_bob();
    witness.granted(&name("cat"), &grant("c", 2, 2, &[]), None, asked(40, 50));
    renewed(&mut witness, "ann", "a", asked(60, 61));
    renewed(&mut witness, "bob", "b", asked(60, 61));
    sees(witness, |what| matches!(what, What::AboveLimit { held: 3, seats_total: 2 }));
}

#[test]
fn a_session_that_was_not_heard_of_again_may_have_ended_before_the_admission() {
    let mut witness = ann_and_bob();
    witness.granted(&name("cat"), &grant("c", 2, 2, &[]), None, asked(40, 50));
    renewed(&mut witness, "ann", "a", asked(60, 61));
    renewed(&mut witness, "bob", "b", asked(45, 61));
    sees_nothing(witness);
}

#[test]
fn the_limit_that_counts_is_the_one_of_the_admission() {
    let mut witness = ann_and_bob();
    let lowered = grant("c", 1, 1, &["a"]);
    witness.granted(&name("cat"), &lowered, None, asked(40, 50));
    renewed(&mut witness, "bob", "b", asked(60, 61));
    sees(witness, |what| matches!(what, What::AboveLimit { held: 2, seats_total: 1 }));
}

#[test]
fn the_eviction_of_one_who_was_heard_of_later_than_one_that_stayed_is_seen() {
    let mut witness = ann_and_bob();
    witness.granted(&name("cat"), &grant("c", 2, 2, &["b"]), None, asked(40, 50));
    renewed(&mut witness, "ann", "a", asked(60, 61));
    sees(witness, |what| matches!(what, What::FresherEvicted { .. }));
}

#[test]
fn one_who_may_have_been_heard_of_in_time_may_stay() {
    for renewal in [asked(31, 35), asked(31, 60), asked(50, 60)] {
        let mut witness = ann_and_bob();
        renewed(&mut witness, "ann", "a", renewal);
        witness.granted(&name("cat"), &grant("c", 2, 2, &["b"]), None, asked(40, 50));
        renewed(&mut witness, "ann", "a", asked(70, 71));
        sees_nothing(witness);
    }
    let mut witness = ann_and_bob();
    witness.abandoned(&name("ann"), asked(32, 33));
    witness.granted(&name("cat"), &grant("c", 2, 2, &["b"]), None, asked(40, 50));
    renewed(&mut witness, "ann", "a", asked(70, 71));
    sees_nothing(witness);
}

#[test]
fn whoever_the_newcomer_named_may_go_first() {
    let mut witness = ann_and_bob();
    witness.granted(&name("cat"), &grant("c", 2, 2, &["b"]), Some(&name("b")), asked(40, 50));
    renewed(&mut witness, "ann", "a", asked(60, 61));
    sees_nothing(witness);
}

#[test]
fn an_eviction_of_more_than_it_takes_is_seen() {
    let mut witness = ann_and_bob();
    witness.granted(&name("cat"), &grant("c", 1, 2, &["a", "b"]), None, asked(40, 50));
    sees(witness, |what| matches!(what, What::EvictedTooMany { evicted: 2, used: 1, total: 2 }));
}

#[test]
fn two_sessions_of_one_device_at_once_are_seen_and_one_after_the_other_is_not() {
    for (renewed_at, together) in [(60, true), (25, false)] {
        let mut witness = Witness::new("test");
        witness.granted(&name("ann"), &grant("a", 1, 4, &[]), None, asked(0, 10));
        witness.granted(&name("ann"), &grant("b", 1, 4, &[]), None, asked(20, 30));
        renewed(&mut witness, "ann", "a", asked(renewed_at, renewed_at + 1));
        renewed(&mut witness, "ann", "b", asked(70, 71));
        match together {
            true => sees(witness, |what| matches!(what, What::SecondSeat { .. })),
            false => sees_nothing(witness),
        }
    }
}

#[test]
fn a_session_that_lives_again_is_seen() {
    let mut witness = ann_and_bob();
    witness.granted(&name("cat"), &grant("c", 2, 2, &["a"]), None, asked(40, 50));
    renewed(&mut witness, "ann", "a", asked(45, 55));
    renewed(&mut witness, "ann", "a", asked(50, 55));
    sees(witness, |what| matches!(what, What::Revived { .. }));
}

#[test]
fn a_holder_that_is_told_full_is_seen_and_one_that_may_have_lost_its_seat_is_not() {
    for (renewed_at, holds) in [(60, true), (45, false)] {
        let mut witness = ann_and_bob();
        witness.denied(&name("ann"), asked(40, 50));
        renewed(&mut witness, "ann", "a", asked(renewed_at, 61));
        match holds {
            true => sees(witness, |what| matches!(what, What::HolderDenied { .. })),
            false => sees_nothing(witness),
        }
    }
}

#[test]
fn an_expiry_before_its_time_is_seen_and_any_other_end_may_come_at_any_time() {
    for (reason, false_end) in [("expired", true), ("evicted", false), ("superseded", false)] {
        let mut witness = ann_and_bob();
        witness.over(&name("a"), Some(reason), asked(40, 50));
        match false_end {
            true => sees(witness, |what| matches!(what, What::FalseEnd { .. })),
            false => sees_nothing(witness),
        }
    }
}
