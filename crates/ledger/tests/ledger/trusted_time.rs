//! Trusted time on record: set once at the start, advanced by nodes, and set back by an operator alone.

use seatkeeper_core::Span;
use seatkeeper_ledger::Write;
use seatkeeper_ledger::trusted_time::OUTAGE_MAX;

use crate::story::{START, Story, admin, ledger, licensed, new_plan};

const HOUR: Span = Span::from_secs(3_600);
const YEAR: Span = Span::from_secs(365 * 86_400);

#[tokio::test]
async fn a_ledger_without_events_trusts_the_clock_of_its_first_start() {
    let (_place, ledger) = ledger().await;
    assert_eq!(ledger.trusted_time().await.unwrap(), None);
    assert_eq!(ledger.trusted_time_at_start(START).await.unwrap(), START);
    assert_eq!(ledger.trusted_time().await.unwrap(), Some(START), "kept for the next start");
    assert_eq!(ledger.trusted_time_at_start(START + YEAR).await.unwrap(), START);
}

#[tokio::test]
async fn a_ledger_without_trusted_time_goes_by_its_newest_session_event() {
    let (_place, ledger) = ledger().await;
    let mut story = Story::new(&licensed(&ledger, 2).await);
    let (_, first) = story.admit("one");
    story.pass(HOUR);
    let (_, second) = story.admit("two");
    ledger.apply(&[first, second]).await.unwrap();
    // A change by an operator is dated by the wall clock of a node.
    let operator = admin();
    let write =
        Write { origin: &operator, at: START + YEAR, idempotency: None, home: None, expected_version: None };
    ledger.create_plan(new_plan("trusted", 1), write).await.unwrap();
    assert_eq!(ledger.trusted_time_at_start(START + YEAR).await.unwrap(), START + HOUR);
    assert_eq!(ledger.trusted_time().await.unwrap(), Some(START + HOUR));
}

#[tokio::test]
async fn events_of_a_wrong_clock_do_not_move_trusted_time() {
    let (_place, ledger) = ledger().await;
    ledger.advance_trusted_time(START).await.unwrap();
    let mut story = Story::new(&licensed(&ledger, 1).await);
    story.pass(YEAR);
    ledger.apply(&[story.admit("one").1]).await.unwrap();
    assert_eq!(ledger.trusted_time_at_start(START + YEAR).await.unwrap(), START);
}

#[tokio::test]
async fn nodes_only_advance_trusted_time_and_an_operator_may_set_it_back() {
    let (_place, ledger) = ledger().await;
    ledger.advance_trusted_time(START + HOUR).await.unwrap();
    ledger.advance_trusted_time(START).await.unwrap();
    assert_eq!(ledger.trusted_time().await.unwrap(), Some(START + HOUR), "a node whose clock is behind");
    ledger.advance_trusted_time(START + YEAR).await.unwrap();
    assert_eq!(ledger.trusted_time().await.unwrap(), Some(START + YEAR));
    ledger.confirm_time(START).await.unwrap();
    assert_eq!(ledger.trusted_time().await.unwrap(), Some(START));
    ledger.confirm_time(START + YEAR).await.unwrap();
    assert_eq!(ledger.trusted_time().await.unwrap(), Some(START + YEAR));
}

#[test]
fn an_outage_is_at_most_a_day() {
    assert_eq!(OUTAGE_MAX, Span::from_secs(86_400));
}
