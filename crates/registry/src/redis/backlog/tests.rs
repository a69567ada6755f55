//! Kept events are the whole rest of a journal, or the drain reads the journal.

#![allow(clippy::unwrap_used, reason = "a failed expectation fails the test")]

use super::*;

const EPOCH: u64 = 3;

fn bucket() -> Bucket {
    Bucket::all().next().unwrap()
}

fn end(position: u64) -> Receipt {
    Receipt { bucket: bucket(), epoch: EPOCH, position }
}

/// Gives the backlog a reply of this node with the events of `positions`.
fn reply(backlog: &Backlog, positions: std::ops::RangeInclusive<u64>) {
    let last = end(*positions.end());
    backlog.note(last, 0);
    backlog.keep(last, positions.map(|position| position.to_be_bytes().into()).collect());
}

/// Returns the positions of the events for the next commit; `None` if the drain must read the journal.
fn kept(backlog: &Backlog) -> Option<Vec<u64>> {
    let events = backlog.kept(bucket(), EPOCH)?;
    for (receipt, event) in &events {
        assert_eq!(event.as_slice(), receipt.position.to_be_bytes(), "an event at the position of another");
    }
    Some(events.into_iter().map(|(receipt, _)| receipt.position).collect())
}

#[test]
fn replies_in_any_order_make_a_whole_journal() {
    let backlog = Backlog::new();
    reply(&backlog, 3..=4);
    assert_eq!(kept(&backlog), None, "events 1 and 2 are missing");
    reply(&backlog, 1..=2);
    reply(&backlog, 5..=5);
    assert_eq!(kept(&backlog), Some(vec![1, 2, 3, 4, 5]));
}

#[test]
fn an_event_of_another_node_sends_the_drain_to_the_journal() {
    let backlog = Backlog::new();
    reply(&backlog, 1..=1);
    backlog.note(end(2), 0);
    assert_eq!(kept(&backlog), None, "event 2 is in the journal alone");
    reply(&backlog, 3..=3);
    assert_eq!(kept(&backlog), None);
    backlog.record(end(2));
    assert_eq!(kept(&backlog), Some(vec![3]));
}

#[test]
fn recorded_events_are_dropped_also_from_the_middle_of_a_reply() {
    let backlog = Backlog::new();
    reply(&backlog, 1..=4);
    backlog.record(end(2));
    assert_eq!(kept(&backlog), Some(vec![3, 4]));
    reply(&backlog, 5..=5);
    backlog.record(end(5));
    assert_eq!(kept(&backlog), None);
    // The reply of a step that another drain has recorded already.
    reply(&backlog, 5..=5);
    assert_eq!(kept(&backlog), None);
}

#[test]
fn another_epoch_has_no_kept_events() {
    let backlog = Backlog::new();
    reply(&backlog, 1..=2);
    assert!(backlog.kept(bucket(), EPOCH + 1).is_none());
    backlog.note(Receipt { epoch: EPOCH + 1, ..end(1) }, 0);
    assert_eq!(kept(&backlog), None);
    reply(&backlog, 3..=3);
    assert!(backlog.kept(bucket(), EPOCH + 1).is_none(), "a late reply of the old epoch");
}

#[test]
fn replies_return_events_while_few_events_wait() {
    let backlog = Backlog::new();
    backlog.note(end(FEW_EVENTS as u64 - 1), 0);
    assert!(backlog.wants_events());
    backlog.note(end(FEW_EVENTS as u64), 0);
    assert!(!backlog.wants_events());
    backlog.record(end(1));
    assert!(backlog.wants_events());
}
