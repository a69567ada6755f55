//! Tests of the prefetch: order, completeness, epochs, bounds.

use seatkeeper_core::{Change, Denial, Denied, Origin, PoolId, PoolKind, RegistryTime, Seats};

use super::*;

const EPOCH: u64 = 3;
const NOTHING: [u64; 0] = [];

fn bucket() -> Bucket {
    Bucket::all().next().expect("there are some")
}

fn end(position: u64) -> Receipt {
    Receipt { bucket: bucket(), epoch: EPOCH, position }
}

/// Returns the event at a position; the number in its pool is equal to the position.
fn event(seq: u64) -> Event {
    let denied =
        Denied { holder: "ann".into(), why: Denial::Full { free_in: None }, count: 1, folded: false };
    Event {
        pool: PoolId::new(PoolKind::License, "acme".into(), "photo"),
        seq,
        epoch: EPOCH,
        at: RegistryTime::from_millis(seq),
        live: 1,
        limit: Seats(1),
        version: 1,
        origin: Origin::SYSTEM,
        change: Change::Denied(denied),
    }
}

/// Simulates a call of this node that wrote events at `places`, and a request waiting for the last.
fn did(backlog: &Backlog, places: std::ops::RangeInclusive<u64>) {
    let last = end(*places.end());
    backlog.note(last, 0);
    backlog.keep(last, places.map(event).collect());
    backlog.expect(last);
}

fn taken(backlog: &Backlog, max: usize) -> Vec<u64> {
    let entries = backlog.take_kept(bucket(), max);
    for entry in &entries {
        assert_eq!(entry.receipt, end(entry.event.seq));
    }
    entries.into_iter().map(|entry| entry.event.seq).collect()
}

fn kept(backlog: &Backlog) -> usize {
    backlog.kept.load(Ordering::Relaxed)
}

#[test]
fn what_is_kept_is_given_once_in_order_however_the_answers_came() {
    let backlog = Backlog::new();
    did(&backlog, 3..=4);
    did(&backlog, 1..=2);
    assert_eq!(taken(&backlog, 10), [1, 2, 3, 4]);
    assert_eq!(taken(&backlog, 10), NOTHING);
    assert_eq!(kept(&backlog), 0);
}

#[test]
fn nothing_is_given_while_one_is_missing_that_is_awaited() {
    let backlog = Backlog::new();
    did(&backlog, 1..=2);
    backlog.note(end(3), 0);
    did(&backlog, 4..=4);
    assert_eq!(taken(&backlog, 10), NOTHING);
    assert_eq!(taken(&backlog, 2), [1, 2], "the first of them are all there");
    backlog.record(end(3));
    assert_eq!(taken(&backlog, 10), [4]);
}

#[test]
fn what_nobody_here_waits_for_is_not_given() {
    let backlog = Backlog::new();
    backlog.note(end(2), 0);
    backlog.keep(end(2), vec![event(1), event(2)]);
    assert_eq!(taken(&backlog, 10), NOTHING);
    backlog.expect(end(1));
    assert_eq!(taken(&backlog, 10), [1]);
}

#[test]
fn what_is_on_record_is_not_kept_whoever_brought_it_there() {
    let backlog = Backlog::new();
    did(&backlog, 1..=4);
    backlog.record(end(1));
    assert_eq!(kept(&backlog), 3);
    backlog.note(end(4), 3);
    assert_eq!(kept(&backlog), 1);
    backlog.keep(end(2), vec![event(1), event(2)]);
    assert_eq!(kept(&backlog), 1, "an answer that came late");
    assert_eq!(taken(&backlog, 10), [4]);
}

#[test]
fn a_new_epoch_ends_what_was_kept_in_the_old_one() {
    let backlog = Backlog::new();
    did(&backlog, 1..=4);
    backlog.note(Receipt { epoch: EPOCH + 1, ..end(1) }, 0);
    assert_eq!(kept(&backlog), 0);
    backlog.keep(end(2), vec![event(1), event(2)]);
    backlog.expect(end(2));
    assert_eq!((kept(&backlog), taken(&backlog, 10)), (0, Vec::new()));
}

#[test]
fn no_more_is_kept_than_may_be() {
    let backlog = Backlog::new();
    for place in 1..=KEPT_MAX as u64 + 10 {
        did(&backlog, place..=place);
    }
    assert_eq!(kept(&backlog), KEPT_MAX);
    assert_eq!(taken(&backlog, KEPT_MAX + 10), NOTHING, "others must be read in any case");
    backlog.record(end(KEPT_MAX as u64 + 10));
    assert_eq!(kept(&backlog), 0);
}
