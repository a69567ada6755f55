//! A node is forgotten only if this node's entry on the roll has ended every lease of the silent node.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta};
use seatkeeper_core::{BucketSet, Span};
use seatkeeper_ledger::nodes::{KnownNode, NodeRow};
use uuid::Uuid;

use super::{Absences, SILENT_FOR};

const OWN: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);

const ROUND: Duration = Duration::from_millis(500);

/// Returns both nodes, the other node with the `number`th row.
fn nodes(number: i64) -> [KnownNode; 2] {
    [OWN, OTHER].map(|id| {
        let row =
            NodeRow { id, name: String::new(), unreachable: BucketSet::default(), named: BTreeSet::new() };
        let seen_at = DateTime::UNIX_EPOCH + TimeDelta::seconds(number);
        KnownNode { row, seen_at, seen_ago: Span::default() }
    })
}

/// Plays rounds of a roll call and a reading for `time`. Returns the time of the first forgetting.
fn plays(absences: &mut Absences, time: Duration, has_told: impl Fn(u32) -> bool) -> Option<Duration> {
    let began = Instant::now();
    let rounds = u32::try_from(time.as_millis() / ROUND.as_millis()).expect("a few");
    (0..=rounds).find_map(|round| {
        let now = began + round * ROUND;
        absences.note_roll_call(has_told(round), now);
        let absent = absences.note_nodes(OWN, &nodes(0), now);
        assert!(absent.iter().all(|node| node.row.id == OTHER), "{absent:?}");
        (!absent.is_empty()).then(|| round * ROUND)
    })
}

#[test]
fn a_silent_node_is_forgotten_after_a_series_of_entries() {
    assert_eq!(plays(&mut Absences::default(), 2 * SILENT_FOR, |_| true), Some(SILENT_FOR));
}

#[test]
fn without_an_entry_on_the_roll_no_node_is_forgotten() {
    assert_eq!(plays(&mut Absences::default(), 10 * SILENT_FOR, |_| false), None);
}

#[test]
fn a_missed_entry_begins_the_series_anew() {
    let missed = |round| round != 9;
    assert_eq!(plays(&mut Absences::default(), 2 * SILENT_FOR, missed), Some(SILENT_FOR + 10 * ROUND));
}

#[test]
fn a_series_with_a_long_pause_is_no_series() {
    let (mut absences, began) = (Absences::default(), Instant::now());
    for now in [began, began + SILENT_FOR] {
        absences.note_roll_call(true, now);
        assert_eq!(absences.note_nodes(OWN, &nodes(0), now), []);
    }
}

#[test]
fn a_node_that_is_seen_again_stays() {
    let (mut absences, began) = (Absences::default(), Instant::now());
    for round in 0..40 {
        let now = began + round * ROUND;
        absences.note_roll_call(true, now);
        assert_eq!(absences.note_nodes(OWN, &nodes(i64::from(round / 9)), now), []);
    }
}
