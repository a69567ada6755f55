//! Tests of the verdict: the meaning of statuses, backoff and `Retry-After`.

use std::time::Duration;

use seatkeeper_core::{RegistryTime, SessionId, Span, TenantId, Usage, Window};
use seatkeeper_ledger::usage::{DueBatch, Settlement, UsageRecord};
use uuid::Uuid;

use super::super::sink::Reply;
use super::{NOT_FOUND_MAX, settlement};

const NOW: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);

fn answered(status: u16, retry_after: Option<u64>) -> Reply {
    Reply::Answered { status, retry_after: retry_after.map(Duration::from_secs), said: "so it goes".into() }
}

/// Returns a batch of two records after earlier attempts.
fn batch(attempts: u32, not_found: u32) -> DueBatch {
    let session: SessionId = "1a2b3c4d-5e6f-8abc-9def-0123456789ab".parse().unwrap();
    let (id, user, capacity) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
    let record = UsageRecord { id, session, user, capacity, usage: Usage::from_micros(1) };
    DueBatch {
        id,
        tenant: TenantId::new("acme"),
        window: Window::new(RegistryTime::default(), NOW).unwrap(),
        attempts,
        not_found,
        may_be_stored: false,
        due: NOW,
        records: vec![record.clone(), record],
    }
}

fn kind(status: u16) -> &'static str {
    match settlement(answered(status, None), &batch(0, 0), &[409, 410], NOW, 0.0) {
        Settlement::Delivered { status: told, at } => {
            assert_eq!((told, at), (status, NOW));
            "delivered"
        }
        Settlement::Retry { status: told, error, may_be_stored, at } => {
            assert_eq!((told, error.as_str()), (Some(status), "so it goes"));
            assert_eq!(may_be_stored, status >= 500, "{status}");
            assert!(at > NOW, "{status} is tried again at once");
            "retry"
        }
        Settlement::Split { at } => {
            assert_eq!((status, at), (413, NOW));
            "split"
        }
        Settlement::Refused { status: told, error, at } => {
            assert_eq!((told, error.as_str(), at), (status, "so it goes", NOW));
            "refused"
        }
        Settlement::Dead { status: told, error, at } => {
            assert_eq!((told, error.as_str(), at), (status, "so it goes", NOW));
            "dead"
        }
    }
}

#[test]
fn a_status_says_whether_the_sink_has_it_may_have_it_later_or_never_will() {
    for (statuses, expected) in [
        (&[200, 201, 202, 204, 299, 409, 410][..], "delivered"),
        (&[401, 403, 404, 408, 425, 429, 500, 502, 503, 504, 599, 600, 999], "retry"),
        (&[101, 301, 302, 307, 308, 402, 405, 411, 415, 499], "dead"),
        (&[400, 422], "refused"),
        (&[413], "split"),
    ] {
        for &status in statuses {
            assert_eq!(kind(status), expected, "{status}");
        }
    }
}

#[test]
fn what_was_not_answered_is_tried_again() {
    for may_be_stored in [false, true] {
        let reply = Reply::Unanswered { why: "timed out".into(), may_be_stored };
        let at = NOW + Span::from_millis(500);
        let expected = Settlement::Retry { status: None, error: "timed out".into(), may_be_stored, at };
        assert_eq!(settlement(reply, &batch(0, 0), &[409], NOW, 0.0), expected);
    }
}

/// Returns the milliseconds until the next attempt.
fn pause(attempts: u32, retry_after: Option<u64>, jitter: f64) -> u64 {
    match settlement(answered(503, retry_after), &batch(attempts, 0), &[], NOW, jitter) {
        Settlement::Retry { at, .. } => at.since(NOW).as_millis(),
        other @ (Settlement::Delivered { .. }
        | Settlement::Split { .. }
        | Settlement::Refused { .. }
        | Settlement::Dead { .. }) => panic!("{other:?}"),
    }
}

#[test]
fn the_pause_doubles_up_to_five_minutes_and_half_of_it_is_chance() {
    for (attempts, least, most) in [
        (0, 500, 1_000),
        (1, 1_000, 2_000),
        (5, 16_000, 32_000),
        (9, 150_000, 300_000),
        (u32::MAX, 150_000, 300_000),
    ] {
        assert_eq!(pause(attempts, None, 0.0), least, "{attempts} attempts");
        let longest = pause(attempts, None, 0.999_999);
        assert!((most - 2..=most).contains(&longest), "{attempts} attempts: {longest}");
    }
}

#[test]
fn a_sink_that_wants_to_be_left_alone_is_for_up_to_five_minutes() {
    assert_eq!(pause(0, Some(30), 0.0), 30_000);
    assert_eq!(pause(0, Some(u64::MAX), 0.0), 300_000);
    assert_eq!(pause(9, Some(1), 0.0), 150_000, "its own pause is longer");
}

#[test]
fn a_sink_that_is_not_found_is_asked_again_for_a_quarter_of_an_hour_at_least() {
    for long_outage in [false, true] {
        let (mut now, mut answers) = (NOW, 0);
        let dead = loop {
            let attempts = answers + if long_outage { 1_000 } else { 0 };
            let settled = settlement(answered(404, None), &batch(attempts, answers), &[], now, 0.0);
            let Settlement::Retry { at, .. } = settled else { break settled };
            now = at;
            answers += 1;
        };
        assert_eq!(dead, Settlement::Dead { status: 404, error: "so it goes".into(), at: now });
        assert_eq!(answers + 1, NOT_FOUND_MAX);
        assert!(now >= NOW + Span::from_secs(900), "dead after {} s", now.since(NOW).as_secs_floor());
    }
}

#[test]
fn a_batch_that_the_sink_may_have_is_dead_instead_of_split() {
    let batch = DueBatch { may_be_stored: true, ..batch(1, 0) };
    for status in [400, 413, 422] {
        let settled = settlement(answered(status, None), &batch, &[], NOW, 0.0);
        assert!(matches!(settled, Settlement::Dead { status: told, .. } if told == status), "{settled:?}");
    }
}

#[test]
fn a_single_record_that_is_too_large_is_dead_with_a_reason() {
    let mut single = batch(0, 0);
    single.records.truncate(1);
    let error = "a single record is too large for the sink: so it goes".to_owned();
    let expected = Settlement::Dead { status: 413, error, at: NOW };
    assert_eq!(settlement(answered(413, None), &single, &[], NOW, 0.0), expected);
}

#[test]
fn a_single_record_that_the_sink_refuses_is_dead() {
    let mut single = batch(0, 0);
    single.records.truncate(1);
    for status in [400, 422] {
        let expected = Settlement::Dead { status, error: "so it goes".into(), at: NOW };
        assert_eq!(settlement(answered(status, None), &single, &[], NOW, 0.0), expected);
    }
}
