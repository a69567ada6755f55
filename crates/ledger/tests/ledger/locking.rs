//! Row locks in PostgreSQL: waits between transactions on the same buckets.

use std::time::{Duration, Instant};

use futures_util::poll;
use seatkeeper_core::{Bucket, EndReason};
use seatkeeper_ledger::Error;
use seatkeeper_ledger::buckets::{BucketMode, EpochRaise};
use seatkeeper_ledger::node_local::LoneNode;
use seatkeeper_ledger::verify::Verdict;
use sqlx::{Connection as _, Executor as _};
use tokio::time::timeout;
use uuid::Uuid;

use crate::place::Connection;
use crate::story::{EPOCH, Story, ledger, licensed, raiser};

/// Longer than any operation takes without waiting for a lock.
const PATIENCE: Duration = Duration::from_secs(2);

const NODE: LoneNode = LoneNode { id: Uuid::from_u128(1), without_home: false };

#[tokio::test(flavor = "multi_thread")]
async fn who_relies_on_an_epoch_holds_up_those_who_raise_it_and_not_those_who_record_events() {
    let (place, ledger) = ledger().await;
    let mut story = Story::new(&licensed(&ledger, 9).await);
    let mut connection = place.connect().await;
    let mut relying = connection.begin().await.unwrap();
    relying.execute("SELECT epoch FROM buckets FOR KEY SHARE").await.unwrap();

    timeout(PATIENCE, ledger.apply(&[story.admit("one").1])).await.expect("not held up").unwrap();
    let all: Vec<_> =
        Bucket::all().map(|bucket| EpochRaise { bucket, seen: EPOCH, next: EPOCH + 1 }).collect();
    let raising = tokio::spawn({
        let ledger = ledger.clone();
        async move { ledger.raise(raiser(&ledger).await, &all, BucketMode::Registry, None).await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!raising.is_finished(), "raised under who relies on it");
    relying.rollback().await.unwrap();
    assert_eq!(timeout(PATIENCE, raising).await.expect("nobody holds it up").unwrap().unwrap().len(), 256);
}

#[tokio::test]
async fn a_node_that_stands_still_in_a_transaction_loses_its_locks_and_records_nothing() {
    let (place, ledger) = ledger().await;
    let license = licensed(&ledger, 9).await;
    let (frozen, mut observer) = (place.another(&ledger).await, place.connect().await);
    let (id, began) = Story::new(&license).admit("frozen");
    let batch = [began];
    // A table lock stops the frozen node at its first record.
    let mut other_work = place.connect().await;
    let mut in_its_way = other_work.begin().await.unwrap();
    in_its_way.execute("LOCK TABLE audit_log IN SHARE MODE").await.unwrap();
    let mut recording = Box::pin(frozen.record_node_local(NODE, &batch));
    while observer.execute("SELECT epoch FROM buckets FOR UPDATE NOWAIT").await.is_ok() {
        assert!(poll!(&mut recording).is_pending(), "nothing is in its way");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    in_its_way.rollback().await.unwrap();

    // From here on the frozen node is not polled.
    let other = [Story::new(&license).admit("other").1];
    let deadline = Instant::now() + Duration::from_secs(30);
    while let Err(error) = ledger.apply(&other).await {
        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
        assert!(Instant::now() < deadline, "it still has its locks");
    }
    let woken = recording.await;
    assert!(matches!(woken, Err(Error::Unavailable(_))), "{woken:?}");
    assert_eq!(ledger.find_session(id).await.unwrap(), None);
    frozen.record_node_local(NODE, &batch).await.unwrap();
    assert!(ledger.find_session(id).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_waits_for_a_purge_brings_no_purged_event_back() {
    let (place, ledger) = ledger().await;
    let mut story = Story::new(&licensed(&ledger, 9).await);
    let (id, admitted) = story.admit("old");
    ledger.apply(&[admitted.clone(), story.end(id, EndReason::Released)]).await.unwrap();

    let (mut connection, mut observer) = (place.connect().await, place.connect().await);
    let mut purge = connection.begin().await.unwrap();
    for statement in [
        "INSERT INTO audit_cuts (tenant_id, pool_kind, pool_id, seq, live)
         SELECT tenant_id, pool_kind, pool_id, seq, live FROM audit_log WHERE action = 'ended'",
        "DELETE FROM sessions",
        "DELETE FROM audit_log WHERE stream = 'session'",
    ] {
        purge.execute(statement).await.unwrap();
    }
    let replay = tokio::spawn({
        let ledger = ledger.clone();
        async move { ledger.apply(&[admitted]).await }
    });
    waits_for_a_lock(&mut observer).await;
    purge.commit().await.unwrap();
    assert_eq!(timeout(PATIENCE, replay).await.expect("nobody holds it up").unwrap().unwrap(), [false]);
    assert_eq!(ledger.find_session(id).await.unwrap(), None);
    let verdict = ledger.verify(|_| ()).await.unwrap();
    assert!(matches!(verdict, Verdict::Proven(_)), "{verdict:?}");
}

/// Waits until a statement in the database waits for a lock.
pub(crate) async fn waits_for_a_lock(observer: &mut Connection) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while waiting_for_locks(observer).await == 0 {
        assert!(Instant::now() < deadline, "nothing waits");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns the number of statements in the database that wait for a lock.
pub(crate) async fn waiting_for_locks(observer: &mut Connection) -> i64 {
    let waiting = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    sqlx::query_scalar(waiting).fetch_one(observer).await.unwrap()
}
