//! Tests of the suite: the list has every clause, and the account detects wrong events.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, iter};

use seatkeeper_core::{
    Change, Denial, Denied, EndReason, Event, Origin, Particulars, PoolId, PoolKind, Region, RegistryTime,
    Seats, Session, SessionId, Span, Tier, Users,
};
use seatkeeper_registry::conformance::books::Account;

#[test]
fn every_clause_is_in_the_suite() {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/conformance");
    let written: BTreeSet<String> = fs::read_dir(&sources)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .flat_map(|path| clauses(&fs::read_to_string(path).unwrap()))
        .collect();
    let suite = fs::read_to_string(sources.join("suite.rs")).unwrap();
    let listed: BTreeSet<_> = suite.lines().filter_map(|line| line.trim().strip_suffix(',')).collect();
    let missing: Vec<_> = written.iter().filter(|clause| !listed.contains(clause.as_str())).collect();
    assert!(missing.is_empty(), "not in conformance_suite!: {missing:?}");
    assert!(written.len() > 80, "only {} clauses were found", written.len());
}

/// Returns the names of functions with a harness as their only argument.
fn clauses(source: &str) -> Vec<String> {
    let names = source.lines().filter_map(|line| line.strip_prefix("pub async fn "));
    let of_a_harness = |line: &str| {
        let harness = ["(h: &impl Harness) {", "(h: &impl Rebuildable) {"];
        harness.iter().find_map(|&harness| line.strip_suffix(harness)).map(str::to_owned)
    };
    names.filter_map(of_a_harness).collect()
}

#[test]
fn an_account_that_adds_up_is_accepted() {
    let events =
        [event(1, 1, admitted(1)), event(2, 2, admitted(2)), event(3, 1, ended(1)), event(4, 1, denied(3))];
    assert_eq!(entered(&events), Ok(()));
}

#[test]
fn a_gap_and_a_repetition_are_found() {
    refused(&[event(1, 1, admitted(1)), event(3, 2, admitted(2))]);
    refused(&[event(1, 1, admitted(1)), event(1, 1, admitted(1))]);
    refused(&[event(2, 1, admitted(1))]);
}

#[test]
fn an_admission_above_the_limit_is_found() {
    refused(&[event(1, 1, admitted(1)), event(2, 2, admitted(2)), event(3, 3, admitted(3))]);
}

#[test]
fn a_wrong_number_of_live_sessions_is_found() {
    refused(&[event(1, 2, admitted(1))]);
    refused(&[event(1, 1, admitted(1)), event(2, 1, ended(1))]);
    refused(&[event(1, 1, admitted(1)), event(2, 0, denied(1))]);
}

#[test]
fn a_session_that_begins_or_ends_twice_or_comes_back_is_found() {
    refused(&[event(1, 1, admitted(1)), event(2, 1, admitted(1))]);
    refused(&[event(1, 1, admitted(1)), event(2, 0, ended(1)), event(3, 0, ended(1))]);
    refused(&[event(1, 1, admitted(1)), event(2, 0, ended(1)), event(3, 1, admitted(1))]);
    refused(&[event(1, 0, ended(1))]);
}

#[test]
fn time_or_epoch_going_back_is_found() {
    let late = Event { at: RegistryTime::from_millis(9), ..event(1, 1, admitted(1)) };
    refused(&[late, event(2, 2, admitted(2))]);
    let newer = Event { epoch: 2, ..event(1, 1, admitted(1)) };
    refused(&[newer, event(2, 2, admitted(2))]);
}

#[test]
fn a_record_of_no_denials_is_found() {
    refused(&[event(1, 0, denied(0))]);
}

fn entered(events: &[Event]) -> Result<(), String> {
    let mut account = Account::carried_forward(0, iter::empty());
    events.iter().try_for_each(|event| account.enter(event))
}

#[track_caller]
fn refused(events: &[Event]) {
    let (last, before) = events.split_last().unwrap();
    let mut account = Account::carried_forward(0, iter::empty());
    assert_eq!(before.iter().try_for_each(|event| account.enter(event)), Ok(()));
    assert!(account.enter(last).is_err(), "{last:?} was accepted");
}

/// Returns an event of a pool with two seats.
fn event(seq: u64, live: u32, change: Change) -> Event {
    Event {
        pool: PoolId::new(PoolKind::License, "acme".into(), "photo"),
        seq,
        epoch: 1,
        at: RegistryTime::from_millis(1),
        live,
        limit: Seats(2),
        version: 1,
        origin: Origin::SYSTEM,
        change,
    }
}

fn session(number: u64) -> Session {
    let now = RegistryTime::from_millis(1);
    let bucket = seatkeeper_core::Bucket::new(0).unwrap();
    Session {
        id: SessionId::mint(now, bucket, Region::default(), number),
        holder: "machine".into(),
        users: Users::one("ann".into()),
        started: now,
        last_heartbeat: now,
        ttl: Span::from_secs(60),
        tier: Tier(1),
    }
}

fn admitted(number: u64) -> Change {
    Change::Admitted {
        session: Box::new(session(number)),
        expires: RegistryTime::from_millis(60_001),
        particulars: Box::new(Particulars::default()),
    }
}

fn ended(number: u64) -> Change {
    let session = session(number);
    Change::Ended {
        session: session.id,
        holder: session.holder,
        tier: session.tier,
        reason: EndReason::Released,
        last_heartbeat: session.last_heartbeat,
        expires: RegistryTime::from_millis(60_001),
    }
}

fn denied(count: u64) -> Change {
    let why = Denial::Full { free_in: None };
    Change::Denied(Denied { holder: "machine".into(), why, count, folded: count != 1 })
}
