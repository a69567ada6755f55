//! An upgrade beside those who write and read.

use std::time::{Duration, Instant};

use seatkeeper_ledger::{Error, Ledger, Settings};
use sqlx::{Connection as _, Executor as _};
use tokio::time::timeout;

use crate::place::{BEFORE_LIVE_SESSIONS, Place};

#[tokio::test]
async fn a_batch_under_way_is_waited_for_and_does_not_wait() {
    let place = Place::new();
    place.make_as_of(BEFORE_LIVE_SESSIONS).await;
    let (mut node, mut observer) = (place.connect().await, place.connect().await);
    let mut batch = node.begin().await.unwrap();
    // Of a batch the records come first.
    batch.execute("LOCK TABLE audit_log IN ROW EXCLUSIVE MODE").await.unwrap();
    let upgrade = tokio::spawn(Ledger::open(Settings::new(place.location())));
    let waiting = "SELECT count(*) FROM pg_locks
        WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let deadline = Instant::now() + Duration::from_secs(30);
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut observer).await.unwrap() == 0 {
        assert!(Instant::now() < deadline, "nobody waits");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    batch.execute("LOCK TABLE sessions IN ROW EXCLUSIVE MODE").await.unwrap();
    batch.commit().await.unwrap();
    upgrade.await.unwrap().unwrap();
}

#[tokio::test]
async fn who_reads_for_long_is_not_waited_for_and_the_next_try_upgrades() {
    let place = Place::new();
    place.make_as_of(BEFORE_LIVE_SESSIONS).await;
    let mut connection = place.connect().await;
    let mut backup = connection.begin().await.unwrap();
    backup.execute("SELECT FROM sessions").await.unwrap();
    let opening = Ledger::open(Settings::new(place.location()));
    let refused = timeout(Duration::from_secs(30), opening).await.expect("waits no longer").map(drop);
    assert!(matches!(refused, Err(Error::Migrate(_))), "{refused:?}");
    backup.commit().await.unwrap();
    Ledger::open(Settings::new(place.location())).await.unwrap();
}
