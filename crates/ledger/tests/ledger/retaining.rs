//! Retention purges old history, and the rest is still proven.

use seatkeeper_core::{EndReason, Event, Seats, Span};
use seatkeeper_ledger::jobs::{Fence, JobName, LOCK_TIMEOUT, RunsKept};
use seatkeeper_ledger::retention::Purged;
use seatkeeper_ledger::verify::{Proof, Verdict};
use seatkeeper_ledger::{Error, Idempotency, Ledger, Write};

use crate::story::{START, Story, admin, by, ledger, licensed, new_license, planned, subscribed};

pub(crate) async fn proof(ledger: &Ledger) -> Proof {
    match ledger.verify(|_| ()).await.unwrap() {
        Verdict::Proven(proof) => proof,
        Verdict::Broken(finding) => panic!("{finding}"),
    }
}

/// Returns the fence of a run of the retention job, needed for purges.
pub(crate) async fn run(ledger: &Ledger) -> Fence {
    ledger.ensure_job(JobName::Retention, Span::from_secs(600), START).await.unwrap();
    ledger.take_job(JobName::Retention, "a", START).await.unwrap().expect("the job is due").fence
}

#[tokio::test]
async fn what_ended_before_the_cut_goes_and_what_was_live_stays_proven() {
    let (_place, ledger) = ledger().await;
    let run = run(&ledger).await;
    let mut story = Story::new(&licensed(&ledger, 3).await);
    let (old, a) = story.admit("old");
    let (lasting, b) = story.admit("lasting");
    let c = story.end(old, EndReason::Released);
    let d = story.deny("nobody");
    story.pass(Span::from_secs(100));
    let cut = story.now;
    let (recent, e) = story.admit("recent");
    let f = story.end(recent, EndReason::Released);
    ledger.apply(&[a, b, c, Event { limit: Seats(1), ..d }, e, f]).await.unwrap();

    let purged = ledger.purge(&run, cut, 1_000).await.unwrap();
    assert_eq!(purged, Purged { records: 3, sessions: 1, more: false });
    assert_eq!(ledger.session(old).await.unwrap(), None);
    assert!(ledger.session(lasting).await.unwrap().is_some());
    assert!(ledger.session(recent).await.unwrap().is_some());
    let proven = proof(&ledger).await;
    assert_eq!((proven.records, proven.live), (4, 1));
    assert_eq!(ledger.purge(&run, cut, 1_000).await.unwrap(), Purged::default());

    story.pass(Span::from_secs(100));
    ledger.apply(&[story.end(lasting, EndReason::Expired)]).await.unwrap();
    story.pass(Span::from_secs(1));
    let purged = ledger.purge(&run, story.now, 1_000).await.unwrap();
    assert_eq!((purged.records, purged.sessions), (4, 2));
    assert_eq!(ledger.pool_seq(&story.pool).await.unwrap(), 7);
    assert_eq!(proof(&ledger).await.live, 0);
    ledger.apply(&[story.admit("next").1]).await.unwrap();
    assert_eq!(proof(&ledger).await.live, 1);
}

#[tokio::test]
async fn a_late_replay_of_purged_events_changes_nothing() {
    let (_place, ledger) = ledger().await;
    let run = run(&ledger).await;
    let mut story = Story::new(&licensed(&ledger, 3).await);
    let mut uncut = Story::new(&licensed(&ledger, 3).await);
    let (lasting, first) = story.admit("lasting");
    let (old, admitted) = story.admit("old");
    let ended = story.end(old, EndReason::Released);
    let purged = [first.clone(), admitted.clone(), ended.clone()];
    ledger.apply(&purged).await.unwrap();
    story.pass(Span::from_secs(1));
    let removed = ledger.purge(&run, story.now, 1_000).await.unwrap();
    assert_eq!((removed.records, removed.sessions), (2, 1), "the admission of the live session stays");

    let (new, next) = story.admit("new");
    let elsewhere = uncut.admit("elsewhere").1;
    for (batch, are_new) in [
        (&purged[1..2], &[false][..]),
        (&purged[2..], &[false]),
        (&purged, &[false; 3]),
        (&[admitted, ended, next.clone(), elsewhere.clone()], &[false, false, true, true]),
        (&[next, elsewhere], &[false; 2]),
    ] {
        assert_eq!(ledger.apply(batch).await.unwrap(), are_new);
        assert_eq!(ledger.session(old).await.unwrap(), None);
    }
    for live in [lasting, new] {
        assert!(ledger.session(live).await.unwrap().is_some());
    }
    assert_eq!(proof(&ledger).await.live, 3);
    // The kept admission is still compared.
    let other = Event { at: story.now, ..first };
    let refused = ledger.apply(&[other]).await;
    assert!(matches!(refused, Err(Error::Contradiction { seq: 1, .. })), "{refused:?}");
}

#[tokio::test]
async fn the_newest_event_is_one_of_a_session_and_stays_known_after_a_purge() {
    let (_place, ledger) = ledger().await;
    let run = run(&ledger).await;
    let mut story = Story::new(&licensed(&ledger, 3).await);
    assert_eq!(ledger.newest_event().await.unwrap(), None, "a license is no event of a session");
    let (a, admitted) = story.admit("ann");
    story.pass(Span::from_secs(100));
    let newest = story.now;
    ledger.apply(&[admitted, story.end(a, EndReason::Released)]).await.unwrap();
    assert_eq!(ledger.newest_event().await.unwrap(), Some(newest));
    ledger.purge(&run, newest, 1_000).await.unwrap();
    assert_eq!(ledger.newest_event().await.unwrap(), Some(newest));
}

#[tokio::test]
async fn small_batches_delete_what_one_large_one_would_and_every_step_is_proven() {
    let (_place, ledger) = ledger().await;
    let run = run(&ledger).await;
    planned(&ledger, "crowd", 1_000_000).await;
    let mut stories = Vec::new();
    for user in ["ann", "bob", "joe"] {
        subscribed(&ledger, user, "crowd").await;
        stories.push(Story::of_subscriber(&ledger, user).await);
    }
    let mut seed = 0x5eed_u64;
    println!("seed {seed:#x}");
    let mut held = vec![Vec::new(); 3];
    let mut events = Vec::new();
    for n in 0..400 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (at, choice) = ((seed >> 33) as usize % 3, (seed >> 40) % 3);
        let (story, held) = (&mut stories[at], &mut held[at]);
        story.pass(Span::from_millis(seed >> 55));
        match held.pop() {
            Some(id) if choice == 0 => events.push(story.end(id, EndReason::Revoked)),
            back => {
                held.extend(back);
                let (id, event) = story.admit(&format!("device-{n}"));
                held.insert(0, id);
                events.push(event);
            }
        }
    }
    ledger.apply(&events).await.unwrap();
    let live = proof(&ledger).await.live;

    let before = stories.iter().map(|story| story.now).max().unwrap() + Span::from_secs(1);
    let mut steps = 0;
    while ledger.purge(&run, before, 23).await.unwrap().more {
        assert_eq!(proof(&ledger).await.live, live);
        steps += 1;
    }
    assert!(steps >= 400 / 23, "{steps} steps");
    let left = proof(&ledger).await;
    // The remaining records are the admissions of the live sessions, the plan's record and three
    // subscriptions' records.
    assert_eq!((left.records, left.admissions, left.live), (live + 4, 0, live));
}

#[tokio::test]
async fn old_idempotency_keys_are_forgotten() {
    let (_place, ledger) = ledger().await;
    let (origin, idempotency) = (admin(), Idempotency { key: "once".to_owned(), request_hash: vec![1] });
    let write = Write { idempotency: Some(&idempotency), ..by(&origin) };
    ledger.create_license(new_license("KEY", 1), write).await.unwrap();
    let run = run(&ledger).await;
    assert_eq!(ledger.purge_idempotency_keys(&run, START, 10).await.unwrap(), 0);
    assert_eq!(ledger.purge_idempotency_keys(&run, START + Span::from_millis(1), 10).await.unwrap(), 1);
}

#[tokio::test]
async fn a_run_that_lost_its_lock_deletes_nothing() {
    let (_place, ledger) = ledger().await;
    let (origin, idempotency) = (admin(), Idempotency { key: "once".to_owned(), request_hash: vec![1] });
    let write = Write { idempotency: Some(&idempotency), ..by(&origin) };
    ledger.create_license(new_license("KEY", 1), write).await.unwrap();
    let mut story = Story::devices("ann");
    let (id, admitted) = story.admit("tv");
    ledger.apply(&[admitted, story.end(id, EndReason::Released)]).await.unwrap();

    let stale = run(&ledger).await;
    let next = ledger.take_job(JobName::Retention, "b", START + LOCK_TIMEOUT).await.unwrap().unwrap().fence;
    let later = START + Span::from_secs(1_000_000);
    let none = RunsKept { since: later, min: 0, max: 0 };
    let purged = ledger.purge(&stale, later, 10).await;
    assert!(matches!(purged, Err(Error::StaleRun)), "{purged:?}");
    for purged in [
        ledger.purge_idempotency_keys(&stale, later, 10).await,
        ledger.purge_job_runs(&stale, &none, 10).await,
    ] {
        assert!(matches!(purged, Err(Error::StaleRun)), "{purged:?}");
    }
    assert!(ledger.session(id).await.unwrap().is_some());

    let purged = ledger.purge(&next, later, 10).await.unwrap();
    assert_eq!((purged.records, purged.sessions), (2, 1));
    assert_eq!(ledger.purge_idempotency_keys(&next, later, 10).await.unwrap(), 1);
    assert_eq!(ledger.purge_job_runs(&next, &none, 10).await.unwrap(), 1, "the run that was lost");
}
