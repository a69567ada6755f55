//! Applying events is atomic and idempotent.

use futures_util::TryStreamExt as _;
use seatkeeper_core::{EndReason, Event, LatestHeartbeat, Span};
use seatkeeper_ledger::audit::{Action, AuditFilter};
use seatkeeper_ledger::sessions::SessionFilter;
use seatkeeper_ledger::{Error, Ledger};

use crate::story::{START, Story, ledger, licensed, tenant};

async fn records(ledger: &Ledger, action: Action) -> usize {
    let filter = AuditFilter { action: Some(action), ..AuditFilter::default() };
    ledger.audit(&tenant(), &filter, None, 1_000).await.unwrap().items.len()
}

#[tokio::test]
async fn an_admission_and_its_end_are_one_session_and_two_records() {
    let (_place, ledger) = ledger().await;
    let mut story = Story::new(&licensed(&ledger, 3).await);
    let (id, began) = story.admit("laptop");
    ledger.apply(std::slice::from_ref(&began)).await.unwrap();

    let live = ledger.session(id).await.unwrap().unwrap();
    assert_eq!((live.pool, live.ended), (story.pool.clone(), None));
    assert_eq!(live.session.holder.as_str(), "laptop");
    assert_eq!(live.session.users.first().as_str(), "ann");
    assert_eq!(live.particulars.ip, Some([192, 0, 2, 7].into()));

    story.pass(Span::from_secs(5));
    ledger.apply(&[story.end(id, EndReason::Released)]).await.unwrap();
    let over = ledger.session(id).await.unwrap().unwrap();
    let end = over.ended.unwrap();
    assert_eq!((end.reason, end.at), (EndReason::Released, START + Span::from_secs(5)));
    assert_eq!(over.session.last_heartbeat, START + Span::from_secs(4));
    assert_eq!((records(&ledger, Action::Admitted).await, records(&ledger, Action::Ended).await), (1, 1));
    assert_eq!(ledger.pool_seq(&story.pool).await.unwrap(), 2);
    assert_eq!(ledger.last_time().await.unwrap(), Some(START + Span::from_secs(5)));
}

#[tokio::test]
async fn a_session_may_begin_and_end_in_one_batch_and_its_holder_be_back() {
    let (_place, ledger) = ledger().await;
    let mut story = Story::new(&licensed(&ledger, 1).await);
    let (first, began) = story.admit("laptop");
    let ended = story.end(first, EndReason::Released);
    let (second, back) = story.admit("laptop");
    ledger.apply(&[began, ended, back]).await.unwrap();

    assert!(ledger.session(first).await.unwrap().unwrap().ended.is_some());
    assert!(ledger.session(second).await.unwrap().unwrap().ended.is_none());
}

#[tokio::test]
async fn a_holder_of_an_earlier_batch_may_leave_and_be_back_in_one() {
    let (_place, ledger) = ledger().await;
    let mut story = Story::new(&licensed(&ledger, 1).await);
    let (first, began) = story.admit("laptop");
    ledger.apply(&[began]).await.unwrap();
    let ended = story.end(first, EndReason::Revoked);
    let (second, back) = story.admit("laptop");
    ledger.apply(&[ended, back]).await.unwrap();

    let reason = ledger.session(first).await.unwrap().unwrap().ended.unwrap().reason;
    assert_eq!(reason, EndReason::Revoked);
    assert!(ledger.session(second).await.unwrap().unwrap().ended.is_none());
}

#[tokio::test]
async fn a_batch_applied_twice_or_overlapping_changes_nothing_more() {
    let (_place, ledger) = ledger().await;
    let mut story = Story::new(&licensed(&ledger, 3).await);
    let (first, a) = story.admit("one");
    let (second, b) = story.admit("two");
    let c = story.end(first, EndReason::Expired);
    let (_, d) = story.admit("one");
    let e = story.end(second, EndReason::Released);
    let f = story.deny("three");
    let are_new = async |batch: &[Event]| ledger.apply(batch).await.unwrap();
    assert_eq!(are_new(&[a.clone(), b.clone(), c.clone()]).await, [true; 3]);
    let before = ledger.session(first).await.unwrap();

    assert_eq!(are_new(&[a.clone(), b.clone(), c.clone()]).await, [false; 3]);
    assert_eq!(are_new(&[b, c, d.clone(), e.clone()]).await, [false, false, true, true]);
    assert_eq!(are_new(&[a, d, e, f]).await, [false, false, false, true]);

    assert_eq!(ledger.session(first).await.unwrap(), before);
    let count = async |action| records(&ledger, action).await;
    assert_eq!(
        (count(Action::Admitted).await, count(Action::Ended).await, count(Action::Denied).await),
        (3, 2, 1)
    );
    let live = SessionFilter { live: Some(true), ..SessionFilter::default() };
    let live = ledger.search_sessions(&tenant(), &live, None, 10).await.unwrap();
    assert_eq!(live.items.len(), 1);
}

#[tokio::test]
async fn a_different_event_at_a_taken_place_is_refused_with_its_batch() {
    let (_place, ledger) = ledger().await;
    let license = licensed(&ledger, 3).await;
    let (_, began) = Story::new(&license).admit("one");
    ledger.apply(&[began]).await.unwrap();

    let mut rival = Story::new(&license);
    rival.pass(Span::from_secs(1));
    let (id, contradicts) = rival.admit("two");
    let (other, follows) = rival.admit("three");
    let refused = ledger.apply(&[contradicts, follows]).await;
    assert!(matches!(refused, Err(Error::Contradiction { seq: 1, .. })), "{refused:?}");
    assert_eq!(ledger.session(id).await.unwrap(), None);
    assert_eq!(ledger.session(other).await.unwrap(), None);
}

#[tokio::test]
async fn batches_of_every_size_are_recorded_whole() {
    let (_place, ledger) = ledger().await;
    let mut story = Story::devices("ann");
    for size in [1, 2, 3, 7, 255, 256, 257, 1_000] {
        let batch: Vec<_> = (0..size).map(|n| story.admit(&format!("{size}/{n}")).1).collect();
        ledger.apply(&batch).await.unwrap();
    }
    let pools: Vec<_> = ledger.live_sessions().try_collect().await.unwrap();
    assert_eq!(pools.len(), 1);
    assert_eq!((pools[0].seq, pools[0].sessions.len()), (1_781, 1_781));
}

#[tokio::test]
async fn the_latest_heartbeats_are_noted_and_only_of_live_sessions() {
    let (_place, ledger) = ledger().await;
    let mut story = Story::devices("ann");
    let (one, a) = story.admit("one");
    let (two, b) = story.admit("two");
    let ended = story.end(two, EndReason::Released);
    ledger.apply(&[a, b, ended]).await.unwrap();
    let told = ledger.session(two).await.unwrap();

    let (soon, late) = (START + Span::from_millis(1_500), START + Span::from_secs(7));
    let (longer, shorter) = (Span::from_secs(600), Span::from_secs(2));
    let heartbeat = |session, at, ttl| LatestHeartbeat { session, at, ttl };
    ledger.flush_heartbeats(&[heartbeat(one, late, longer), heartbeat(two, late, longer)]).await.unwrap();
    ledger.flush_heartbeats(&[heartbeat(one, soon, shorter)]).await.unwrap();
    let session = ledger.session(one).await.unwrap().unwrap().session;
    assert_eq!((session.last_heartbeat, session.ttl), (late, longer));
    assert_eq!(ledger.session(two).await.unwrap(), told);
    assert_eq!(ledger.last_time().await.unwrap(), Some(late));
}
