//! Begins of an adoption in PostgreSQL at the same time as other begins, and as homes that come over. Homes that come over, or
//! leave, at the same time as a write.

use std::time::{Duration, Instant};

use seatkeeper_core::{PoolId, PoolKind, UserId};
use seatkeeper_ledger::homes::{Arrival, ArrivalKind};
use seatkeeper_ledger::{Effect, Error, Idempotency, Ledger, Write};
use sqlx::{Connection as _, Executor as _};
use tokio::time::timeout;

use crate::homes::{LOST, NOW, OWN, SECOND, arrival, home_of, terms};
use crate::homes_with_writes::subscribe_at;
use crate::locking::{waiting_for_locks, waits_for_a_lock};
use crate::story::{admin, by, ledger, new_subscription, tenant};

/// Longer than any operation takes without waiting for a lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// A begin at `NOW`, with a home that has come over since.
const BEGIN: &str = "
    INSERT INTO region_adoptions (lost, successor, admits_from, first_admits_from, is_done, audit_head, at)
    VALUES (3, 1, to_timestamp(1800000000), to_timestamp(1800000000), 0, 0, now());
    INSERT INTO homes (tenant_id, user_id, region, version, state, since, admits_from)
    VALUES ('acme', 'ann', 1, 2, 'here', now(), to_timestamp(1800000000))";

/// A begin by another region.
const BEGIN_ELSEWHERE: &str = "
    SELECT region FROM own_region FOR NO KEY UPDATE;
    INSERT INTO region_adoptions (lost, successor, admits_from, first_admits_from, is_done, audit_head, at)
    VALUES (3, 2, to_timestamp(1800000000), to_timestamp(1800000000), 0, 0, now())";

#[tokio::test(flavor = "multi_thread")]
async fn an_arrival_that_waits_for_a_begin_is_refused() {
    let (place, ledger) = ledger().await;
    ledger.fix_own_region(OWN, true).await.unwrap();
    let terms = terms(&ledger).await;
    let (mut connection, mut observer) = (place.connect().await, place.connect().await);
    let mut begin = connection.begin().await.unwrap();
    begin.execute(BEGIN_ELSEWHERE).await.unwrap();
    let taking = tokio::spawn({
        let (ledger, late) = (ledger.clone(), Arrival { from: LOST, ..arrival(2, Vec::new()) });
        async move { ledger.take_home(&late, OWN, terms, NOW).await }
    });
    waits_for_a_lock(&mut observer).await;
    begin.commit().await.unwrap();
    let refused = timeout(PATIENCE, taking).await.expect("nobody holds it up").unwrap();
    assert!(matches!(refused, Err(Error::RegionAdopted { lost: LOST })), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_begin_waits_for_an_arrival_under_way() {
    let (place, ledger) = ledger().await;
    ledger.fix_own_region(OWN, true).await.unwrap();
    let terms = terms(&ledger).await;
    // The arrival has found no adoption, and waits to place the home.
    let (mut connection, mut observer) = (place.connect().await, place.connect().await);
    let mut lock = connection.begin().await.unwrap();
    lock.execute("LOCK TABLE homes IN SHARE MODE").await.unwrap();
    let taking = tokio::spawn({
        let (ledger, arrival) = (ledger.clone(), Arrival { from: LOST, ..arrival(2, Vec::new()) });
        async move { ledger.take_home(&arrival, OWN, terms, NOW).await }
    });
    waits_for_a_lock(&mut observer).await;
    let beginning = tokio::spawn(begin_later(ledger.clone()));
    let deadline = Instant::now() + PATIENCE;
    while waiting_for_locks(&mut observer).await < 2 {
        assert!(!beginning.is_finished(), "the adoption began beside an arrival under way");
        assert!(Instant::now() < deadline, "the begin neither waits nor ends");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    lock.rollback().await.unwrap();
    timeout(PATIENCE, taking).await.expect("nobody holds it up").unwrap().unwrap();
    timeout(PATIENCE, beginning).await.expect("nobody holds it up").unwrap();
    assert_eq!(home_of(&ledger, "ann").await.region, OWN);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_begin_that_waits_for_another_begin_prolongs_the_silence_of_homes() {
    let (place, ledger) = ledger().await;
    let (mut connection, mut observer) = (place.connect().await, place.connect().await);
    let mut first = connection.begin().await.unwrap();
    first.execute(BEGIN).await.unwrap();
    let second = tokio::spawn(begin_later(ledger.clone()));
    waits_for_a_lock(&mut observer).await;
    first.commit().await.unwrap();
    timeout(PATIENCE, second).await.expect("nobody holds it up").unwrap();
    assert_eq!(home_of(&ledger, "ann").await.admits_from, Some(NOW + SECOND));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_home_that_waits_for_a_begin_is_silent_from_the_begin_on() {
    let (place, ledger) = ledger().await;
    ledger.note_adoption((LOST, OWN), NOW, OWN).await.unwrap();
    let terms = terms(&ledger).await;
    let (mut connection, mut observer) = (place.connect().await, place.connect().await);
    let mut begin = connection.begin().await.unwrap();
    begin.execute("UPDATE region_adoptions SET admits_from = to_timestamp(1800000001)").await.unwrap();
    let taking = tokio::spawn({
        let (ledger, stale) = (ledger.clone(), Some(NOW));
        let arrival = arrival(2, Vec::new());
        let adopted = Arrival { from: LOST, kind: ArrivalKind::Adopted, admits_from: stale, ..arrival };
        async move { ledger.take_home(&adopted, OWN, terms, NOW).await }
    });
    waits_for_a_lock(&mut observer).await;
    begin.commit().await.unwrap();
    let taken = timeout(PATIENCE, taking).await.expect("nobody holds it up").unwrap().unwrap();
    assert_eq!(taken.unwrap().admits_from, Some(NOW + SECOND));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_arrived_answer_waits_for_a_write_under_way_and_replaces_none() {
    let (_left, from) = ledger().await;
    let (place, into) = ledger().await;
    let (once, origin) = (Idempotency { key: "once".to_owned(), request_hash: vec![1; 32] }, admin());
    let write = Write { idempotency: Some(&once), ..by(&origin) };
    let elsewhere = from.create_subscription(new_subscription("ann", "basic"), write).await.unwrap().value;
    let pool = PoolId::new(PoolKind::Subscriber, tenant(), "ann");
    let answers = from.kept_answers(&pool).await.unwrap();
    assert_eq!(answers.len(), 1);
    let terms = terms(&into).await;

    // The write has found no kept answer, and waits to create the subscription.
    let (mut connection, mut observer) = (place.connect().await, place.connect().await);
    let mut lock = connection.begin().await.unwrap();
    lock.execute("LOCK TABLE subscriptions IN SHARE MODE").await.unwrap();
    let writing = tokio::spawn({
        let (ledger, once, origin) = (into.clone(), once.clone(), origin.clone());
        async move {
            let write = Write { idempotency: Some(&once), ..by(&origin) };
            ledger.create_subscription(new_subscription("bob", "basic"), write).await
        }
    });
    waits_for_a_lock(&mut observer).await;
    let taking = tokio::spawn({
        let (ledger, arrival) = (into.clone(), Arrival { answers, ..arrival(2, Vec::new()) });
        async move { ledger.take_home(&arrival, OWN, terms, NOW).await }
    });
    let deadline = Instant::now() + PATIENCE;
    while waiting_for_locks(&mut observer).await < 2 && !taking.is_finished() {
        assert!(Instant::now() < deadline, "the arrival neither waits nor ends");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    lock.rollback().await.unwrap();
    let own = timeout(PATIENCE, writing).await.expect("nobody holds it up").unwrap().unwrap().value;
    timeout(PATIENCE, taking).await.expect("nobody holds it up").unwrap().unwrap();

    let again = into.create_subscription(new_subscription("bob", "basic"), write).await.unwrap();
    assert_eq!((again.effect, again.value.id), (Effect::Replayed, own.id), "not {:?}", elsewhere.id);
}

/// A subscription written as its home begins to leave is in the handover, or refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_home_begins_to_leave_after_a_write_of_its_subscription_under_way() {
    let (place, ledger) = ledger().await;
    let (tenant, user) = (tenant(), UserId::new("ann"));
    ledger.assign_home(&tenant, &user, OWN, OWN).await.unwrap();

    // The write has found the home here, and waits to create the subscription.
    let (mut connection, mut observer) = (place.connect().await, place.connect().await);
    let mut lock = connection.begin().await.unwrap();
    lock.execute("LOCK TABLE subscriptions IN SHARE MODE").await.unwrap();
    let writing = tokio::spawn({
        let ledger = ledger.clone();
        async move { subscribe_at(&ledger, Some(OWN)).await }
    });
    waits_for_a_lock(&mut observer).await;
    let leaving = tokio::spawn({
        let (ledger, tenant, user) = (ledger.clone(), tenant.clone(), user.clone());
        async move { ledger.begin_home_move(&tenant, &user, OWN, LOST).await }
    });
    let deadline = Instant::now() + PATIENCE;
    while waiting_for_locks(&mut observer).await < 2 {
        assert!(!leaving.is_finished(), "the home left beside a write under way");
        assert!(Instant::now() < deadline, "the move neither waits nor ends");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    lock.rollback().await.unwrap();
    timeout(PATIENCE, writing).await.expect("nobody holds it up").unwrap().unwrap();
    timeout(PATIENCE, leaving).await.expect("nobody holds it up").unwrap().unwrap();
    assert!(ledger.home_moving(&tenant, &user).await.unwrap().is_some());
}

async fn begin_later(ledger: Ledger) {
    ledger.note_adoption((LOST, OWN), NOW + SECOND, OWN).await.unwrap();
}
