//! The replay proves an untouched log, and finds every kind of violation.

use seatkeeper_core::{EndReason, Holder, Seats, SessionId, Span};
use seatkeeper_ledger::audit::{Action, AuditFilter, AuditRecord, Stream};
use seatkeeper_ledger::licenses::LicenseChange;
use seatkeeper_ledger::sessions::{SessionFilter, SessionRecord};
use seatkeeper_ledger::verify::{Breach, BreachSite, Cut, Finding, PlanHistory, Proof, Replay};

use crate::story::{Story, admin, by, ledger, licensed, tenant};

/// A valid history of a license with 2 seats and then 3.
struct History {
    records: Vec<AuditRecord>,
    sessions: Vec<SessionRecord>,
}

// Indexes of the history's records.
const CREATED: usize = 0;
const UPDATED: usize = 1;
const ONE: usize = 2;
const TWO: usize = 3;
const DENIED: usize = 4;
const ONE_ENDED: usize = 5;
const THREE: usize = 6;
const TWO_EXPIRED: usize = 7;

impl History {
    async fn told() -> Self {
        let (_place, ledger) = ledger().await;
        let license = licensed(&ledger, 2).await;
        let change = LicenseChange { max_seats: Some(Seats(3)), ..LicenseChange::default() };
        let updated =
            ledger.update_license(&tenant(), license.id, &change, by(&admin())).await.unwrap().value;

        let mut story = Story::new(&license);
        let mut events = Vec::new();
        let (one, began) = story.admit("one");
        events.push(began);
        let (two, began) = story.admit("two");
        events.push(began);
        story.pass(Span::from_secs(1));
        events.push(story.deny("three"));
        events.push(story.end(one, EndReason::Released));
        (story.limit, story.version) = (updated.max_seats.0, updated.version);
        events.push(story.admit("three").1);
        events.push(story.end(two, EndReason::Expired));
        ledger.apply(&events).await.unwrap();

        let records = ledger.audit(&tenant(), &AuditFilter::default(), None, 100).await.unwrap();
        let sessions = ledger.search_sessions(&tenant(), &SessionFilter::default(), None, 100).await.unwrap();
        Self { records: records.items.into_iter().rev().collect(), sessions: sessions.items }
    }

    fn replay(&self, cut: Option<Cut>) -> Result<Proof, Finding> {
        self.replay_repaired(cut, Vec::new())
    }

    /// Replays the history with repairs of registry time after the records with ids `repaired_after`.
    fn replay_repaired(&self, cut: Option<Cut>, repaired_after: Vec<u64>) -> Result<Proof, Finding> {
        let plans = PlanHistory::default();
        let replay = Replay::new(self.records[0].pool.clone(), cut, &plans);
        let mut replay = replay.with_clock_repairs(repaired_after);
        for record in &self.records {
            replay.record(record)?;
        }
        for session in &self.sessions {
            replay.session(session)?;
        }
        replay.finish()
    }

    fn session_of(&self, record: usize) -> SessionId {
        self.records[record].session.unwrap()
    }
}

/// Changes the history and returns the breach, which must be at record `seq` of `stream`.
async fn found_at(stream: Stream, seq: u64, change: impl FnOnce(&mut History)) -> Breach {
    let mut history = History::told().await;
    change(&mut history);
    let finding = history.replay(None).expect_err("the change breaks the log");
    assert!(
        matches!(finding.place, BreachSite::Record { stream: s, seq: n, .. } if (s, n) == (stream, seq)),
        "{finding}"
    );
    finding.breach
}

/// Changes the history and returns the breach, at any place.
async fn found(change: impl FnOnce(&mut History)) -> Breach {
    let mut history = History::told().await;
    change(&mut history);
    history.replay(None).expect_err("the change breaks the log").breach
}

#[tokio::test]
async fn a_whole_history_is_proven() {
    let proof = History::told().await.replay(None).unwrap();
    let expected = Proof {
        pools: 1,
        records: 8,
        admissions: 3,
        ends: 2,
        denials: 1,
        live: 1,
        node_local: 0,
        clock_repairs: 0,
        lost_terms: Vec::new(),
    };
    assert_eq!(proof, expected);
}

#[tokio::test]
async fn a_missing_record_is_a_gap() {
    let breach = found_at(Stream::Session, 4, |history| drop(history.records.remove(DENIED))).await;
    assert_eq!(breach, Breach::Gap { expected: 3 });
    let breach = found_at(Stream::Session, 2, |history| drop(history.records.remove(ONE))).await;
    assert_eq!(breach, Breach::Gap { expected: 1 });
    let breach = found_at(Stream::Entitlement, 2, |history| drop(history.records.remove(CREATED))).await;
    assert_eq!(breach, Breach::Gap { expected: 1 });
}

#[tokio::test]
async fn a_record_that_is_there_twice_is_found() {
    let twice = |history: &mut History| history.records.insert(TWO, history.records[TWO].clone());
    assert_eq!(found_at(Stream::Session, 2, twice).await, Breach::Gap { expected: 3 });
}

#[tokio::test]
async fn time_that_runs_back_is_found() {
    let back = |history: &mut History| {
        let record = &mut history.records[DENIED];
        record.at = record.at - Span::from_secs(60);
    };
    assert_eq!(found_at(Stream::Session, 3, back).await, Breach::TimeRanBack);
}

#[tokio::test]
async fn time_may_run_back_at_a_repair_of_registry_time_alone() {
    let mut history = History::told().await;
    let record = &mut history.records[DENIED];
    record.at = record.at - Span::from_secs(60);
    history.replay_repaired(None, vec![history.records[TWO].id]).expect("a repair lies between");
    for other in [ONE, DENIED] {
        let repaired_after = vec![history.records[other].id];
        let finding = history.replay_repaired(None, repaired_after).expect_err("no repair lies between");
        assert_eq!(finding.breach, Breach::TimeRanBack);
    }
}

#[tokio::test]
async fn a_record_without_what_its_action_needs_is_malformed() {
    let malformed = [
        found_at(Stream::Session, 1, |history| history.records[ONE].session = None).await,
        found_at(Stream::Session, 1, |history| history.records[ONE].holder = None).await,
        found_at(Stream::Session, 1, |history| history.records[ONE].live = None).await,
        found_at(Stream::Session, 4, |history| history.records[ONE_ENDED].reason = None).await,
        found_at(Stream::Session, 3, |history| history.records[DENIED].action = Action::LicenseCreated).await,
        found_at(Stream::Entitlement, 2, |history| history.records[UPDATED].action = Action::LicenseCreated)
            .await,
    ];
    assert_eq!(malformed, std::array::from_fn(|_| Breach::Malformed));
}

#[tokio::test]
async fn the_versions_of_a_license_follow_one_another() {
    for version in [0, 1, 3] {
        let wrong = |history: &mut History| history.records[UPDATED].version = version;
        let breach = found_at(Stream::Entitlement, 2, wrong).await;
        assert_eq!(breach, Breach::VersionSkips { version, newest: 1 });
    }
}

#[tokio::test]
async fn an_admission_above_its_limit_is_found() {
    let above = |history: &mut History| {
        history.records[CREATED].limit = 1;
        history.records[ONE].limit = 1;
        history.records[TWO].limit = 1;
    };
    assert_eq!(found_at(Stream::Session, 2, above).await, Breach::AboveLimit { live: 2, limit: 1 });
}

#[tokio::test]
async fn a_limit_that_the_license_never_granted_is_found() {
    let larger = |history: &mut History| history.records[TWO].limit = 5;
    let breach = found_at(Stream::Session, 2, larger).await;
    assert_eq!(breach, Breach::LimitNotGranted { limit: 5, version: 1, granted: Some(2) });
    let unheard_of = |history: &mut History| history.records[TWO].version = 9;
    let breach = found_at(Stream::Session, 2, unheard_of).await;
    assert_eq!(breach, Breach::LimitNotGranted { limit: 2, version: 9, granted: None });
    let unknown = |history: &mut History| history.records[TWO].version = 0;
    let breach = found_at(Stream::Session, 2, unknown).await;
    assert_eq!(breach, Breach::LimitNotGranted { limit: 2, version: 0, granted: Some(1) });
}

#[tokio::test]
async fn an_older_limit_after_a_newer_one_is_found() {
    let older = |history: &mut History| {
        (history.records[TWO].limit, history.records[TWO].version) = (3, 2);
        (history.records[THREE].limit, history.records[THREE].version) = (2, 1);
    };
    let breach = found_at(Stream::Session, 5, older).await;
    assert_eq!(breach, Breach::OlderTerms { version: 1, newest: 2 });
}

#[tokio::test]
async fn a_miscount_of_live_sessions_is_found() {
    for (seq, at) in [(1, ONE), (3, DENIED), (4, ONE_ENDED)] {
        let miscount = |history: &mut History| history.records[at].live = Some(7);
        let breach = found_at(Stream::Session, seq, miscount).await;
        assert!(matches!(breach, Breach::LiveMiscounted { told: 7, .. }), "{breach}");
    }
}

#[tokio::test]
async fn a_session_that_begins_again_is_found() {
    let again = |history: &mut History| history.records[THREE].session = history.records[ONE].session;
    let breach = found_at(Stream::Session, 5, again).await;
    assert!(matches!(breach, Breach::BeganAgain { .. }), "{breach}");
}

#[tokio::test]
async fn a_holder_with_two_sessions_is_found() {
    let twice = |history: &mut History| history.records[TWO].holder = Some(Holder::from("one"));
    let breach = found_at(Stream::Session, 2, twice).await;
    assert!(matches!(breach, Breach::HolderIsIn { .. }), "{breach}");
}

#[tokio::test]
async fn an_end_without_a_beginning_is_found() {
    let others = |history: &mut History| history.records[ONE_ENDED].holder = Some(Holder::from("two"));
    let breach = found_at(Stream::Session, 4, others).await;
    assert!(matches!(breach, Breach::NeverBegan { .. }), "{breach}");
    let early = |history: &mut History| {
        history.records[ONE_ENDED].session = history.records[THREE].session;
        history.records[ONE_ENDED].holder = history.records[THREE].holder.clone();
    };
    let breach = found_at(Stream::Session, 4, early).await;
    assert!(matches!(breach, Breach::NeverBegan { .. }), "{breach}");
}

#[tokio::test]
async fn a_second_end_is_found() {
    let again = |history: &mut History| {
        history.records[TWO_EXPIRED].session = history.records[ONE].session;
        history.records[TWO_EXPIRED].holder = history.records[ONE].holder.clone();
    };
    let breach = found_at(Stream::Session, 6, again).await;
    assert!(matches!(breach, Breach::EndedAgain { .. }), "{breach}");
}

#[tokio::test]
async fn an_expiry_before_its_time_is_found() {
    let early = |history: &mut History| {
        let record = &mut history.records[TWO_EXPIRED];
        record.expires = Some(record.at + Span::from_millis(1));
    };
    let breach = found_at(Stream::Session, 6, early).await;
    assert!(matches!(breach, Breach::ExpiredEarly { .. }), "{breach}");
}

#[tokio::test]
async fn a_denial_while_a_seat_was_free_is_found_unless_it_was_only_counted() {
    let free = |history: &mut History| history.records[DENIED].limit = 3;
    let breach = found_at(Stream::Session, 3, free).await;
    assert_eq!(breach, Breach::DeniedWithSeatsFree { live: 2, limit: 3 });

    let mut history = History::told().await;
    free(&mut history);
    history.records[DENIED].folded = true;
    history.replay(None).unwrap();
}

#[tokio::test]
async fn a_cut_that_keeps_the_wrong_admissions_is_found() {
    let mut history = History::told().await;
    let told = history.replay(Some(Cut { seq: 2, live: 2 }));
    assert_eq!(told.unwrap().admissions, 1);
    let finding = history.replay(Some(Cut { seq: 2, live: 1 })).unwrap_err();
    assert_eq!(finding.breach, Breach::CutMiscounted { told: 1, kept: 2 });
    history.records.truncate(THREE);
    let finding = history.replay(Some(Cut { seq: 9, live: 2 })).unwrap_err();
    assert_eq!(finding.breach, Breach::Malformed, "{finding}");
}

#[tokio::test]
async fn a_table_of_sessions_that_the_log_does_not_give_is_found() {
    let breach = found(|history| drop(history.sessions.pop())).await;
    assert_eq!(breach, Breach::SessionsMissing { missing: 1 });
    let breach = found(|history| history.sessions[0].session.holder = Holder::from("else")).await;
    assert_eq!(breach, Breach::Differs);
    let breach = found(|history| {
        let session = &mut history.sessions[0].session;
        session.started = session.started - Span::from_millis(1);
    })
    .await;
    assert_eq!(breach, Breach::Differs);
    let breach = found(|history| history.sessions.iter_mut().for_each(|row| row.ended = None)).await;
    assert_eq!(breach, Breach::Differs);
    let breach = found(|history| {
        let id = history.session_of(ONE);
        let unknown = SessionId::mint(history.records[0].at, id.bucket(), id.region(), 99);
        history.sessions[0].session.id = unknown;
    })
    .await;
    assert_eq!(breach, Breach::NotOnRecord);
}

#[tokio::test]
async fn a_finding_names_the_record_and_says_why() {
    let mut history = History::told().await;
    history.records[TWO].limit = 1;
    let (finding, record) = (history.replay(None).unwrap_err(), &history.records[TWO]);
    let expected = format!(
        "pool {:?}, session record 2 (id {}): the admission left 2 live sessions, and the limit was 1",
        record.pool, record.id
    );
    assert_eq!(finding.to_string(), expected);
}
