//! The names on record are always among the names whose word counts.

use std::collections::BTreeSet;

use chrono::DateTime;
use seatkeeper_core::{BucketSet, Span};
use seatkeeper_ledger::nodes::{KnownNode, NodeRow};
use uuid::Uuid;

use super::{NAMED, Names};

const OWN: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);

fn known(id: Uuid, seen_ago: Span) -> KnownNode {
    let row = NodeRow { id, name: String::new(), unreachable: BucketSet::default(), named: BTreeSet::new() };
    KnownNode { row, seen_at: DateTime::UNIX_EPOCH, seen_ago }
}

fn reads(names: &mut Names, nodes: &[KnownNode]) {
    let recorded = names.to_record();
    names.note(recorded, nodes);
}

#[test]
fn a_node_names_every_node_seen_lately() {
    let mut names = Names::default();
    reads(&mut names, &[known(OWN, Span::default()), known(OTHER, Span::from_secs(9))]);
    assert_eq!(names.all(), BTreeSet::from([OWN, OTHER]));
    let mut names = Names::default();
    reads(&mut names, &[known(OWN, Span::default()), known(OTHER, NAMED)]);
    assert_eq!(names.all(), BTreeSet::from([OWN]));
}

#[test]
fn a_dropped_name_counts_until_the_row_without_it_is_on_record() {
    let mut names = Names::default();
    let both = [known(OWN, Span::default()), known(OTHER, Span::default())];
    let silent = [known(OWN, Span::default()), known(OTHER, NAMED)];
    reads(&mut names, &both);
    reads(&mut names, &silent);
    assert_eq!(names.to_record(), BTreeSet::from([OWN]));
    assert!(names.all().contains(&OTHER), "the row on record has the name");
    reads(&mut names, &silent);
    assert_eq!(names.all(), BTreeSet::from([OWN]));
}
