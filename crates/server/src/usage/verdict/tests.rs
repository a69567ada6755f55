//! Tests of the verdict: the meaning of statuses, backoff and `Retry-After`.

use std::time::Duration;

use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_ledger::usage::Settlement;

use super::super::sink::Reply;
use super::settlement;

const NOW: RegistryTime = RegistryTime::from_millis(1_800_000_000_000);

fn answered(status: u16, retry_after: Option<u64>) -> Reply {
    Reply::Answered { status, retry_after: retry_after.map(Duration::from_secs), said: "so it goes".into() }
}

fn kind(status: u16) -> &'static str {
    match settlement(answered(status, None), 0, &[409, 422], NOW, 0.0) {
        Settlement::Delivered { status: told, at } => {
            assert_eq!((told, at), (status, NOW));
            "delivered"
        }
        Settlement::Retry { status: told, error, at } => {
            assert_eq!((told, error.as_str()), (Some(status), "so it goes"));
            assert!(at > NOW, "{status} is tried again at once");
            "retry"
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
        (&[200, 201, 202, 204, 299, 409, 422][..], "delivered"),
        (&[401, 403, 408, 425, 429, 500, 502, 503, 504, 599, 600, 999], "retry"),
        (&[101, 301, 302, 307, 308, 400, 402, 404, 405, 410, 413, 415, 499], "dead"),
    ] {
        for &status in statuses {
            assert_eq!(kind(status), expected, "{status}");
        }
    }
}

#[test]
fn what_was_not_answered_is_tried_again() {
    let reply = Reply::Unanswered { why: "timed out".into() };
    let at = NOW + Span::from_millis(500);
    let expected = Settlement::Retry { status: None, error: "timed out".into(), at };
    assert_eq!(settlement(reply, 0, &[409], NOW, 0.0), expected);
}

/// Returns the milliseconds until the next attempt.
fn pause(attempts: u32, retry_after: Option<u64>, jitter: f64) -> u64 {
    match settlement(answered(503, retry_after), attempts, &[], NOW, jitter) {
        Settlement::Retry { at, .. } => at.since(NOW).as_millis(),
        other @ (Settlement::Delivered { .. } | Settlement::Dead { .. }) => panic!("{other:?}"),
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
