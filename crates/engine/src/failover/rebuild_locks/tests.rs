//! A lock lasts as long as the work on its bucket, and a hung rebuild keeps no lock.

use seatkeeper_ledger::Settings;
use tempfile::TempDir;

use super::*;

const NODE: Uuid = Uuid::from_u128(1);
const OTHER: Uuid = Uuid::from_u128(2);

/// The time between two renewals.
const A_MOMENT: Duration = Duration::from_millis(50);

async fn ledger() -> (Ledger, TempDir) {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = Ledger::open(Settings::new(dir.path())).await.expect("a ledger");
    (ledger, dir)
}

fn buckets<const N: usize>(numbers: [u16; N]) -> Vec<Bucket> {
    numbers.map(|number| Bucket::new(number).expect("a bucket")).into()
}

/// Returns the lockable buckets of 1, 2 and 3, for the other node.
async fn lockable(ledger: &Ledger) -> Vec<Bucket> {
    let locked = ledger.lock_buckets(OTHER, &buckets([1, 2, 3]), LOCK_TIME).await.expect("an answer");
    ledger.unlock_buckets(OTHER, &locked).await.expect("an answer");
    locked
}

#[tokio::test]
async fn a_released_lock_is_not_renewed() {
    let (ledger, _dir) = ledger().await;
    ledger.lock_buckets(OTHER, &buckets([3]), LOCK_TIME).await.expect("an answer");
    let mut locks = RebuildLocks::take(&ledger, NODE, &buckets([1, 2, 3])).await.expect("locks");
    ledger.unlock_buckets(OTHER, &buckets([3])).await.expect("an answer");
    locks.renewal = Renewal { interval: A_MOMENT, stops_after: Duration::MAX };
    let release = async {
        locks.release(&buckets([1, 3]).into_iter().collect(), false).await.expect("a release");
        tokio::time::sleep(4 * A_MOMENT).await;
    };
    tokio::select! {
        () = release => {}
        never = locks.keep() => match never {},
    }
    assert_eq!(lockable(&ledger).await, buckets([1, 3]));
    assert_eq!(locks.held().await, buckets([2]).into_iter().collect());
}

#[tokio::test]
async fn after_a_failure_a_lock_stays_for_a_while() {
    let (ledger, _dir) = ledger().await;
    let locks = RebuildLocks::take(&ledger, NODE, &buckets([1, 2])).await.expect("locks");
    locks.release(&buckets([1]).into_iter().collect(), true).await.expect("a release");
    assert_eq!(lockable(&ledger).await, buckets([3]));
    tokio::time::sleep(Duration::from_millis(LOCK_TIME_AFTER_FAILURE.as_millis()) + A_MOMENT).await;
    assert_eq!(lockable(&ledger).await, buckets([1, 3]));
}

#[tokio::test]
async fn a_hung_rebuild_does_not_renew_its_locks_for_ever() {
    let (ledger, _dir) = ledger().await;
    let mut locks = RebuildLocks::take(&ledger, NODE, &buckets([1])).await.expect("locks");
    locks.renewal = Renewal { interval: A_MOMENT, stops_after: 40 * A_MOMENT };
    let expire = async {
        // Only a renewal locks the bucket again.
        ledger.unlock_buckets(NODE, &buckets([1])).await.expect("an answer");
        tokio::time::sleep(10 * A_MOMENT).await;
        assert_eq!(lockable(&ledger).await, buckets([2, 3]), "the rebuild may be slow");
        tokio::time::sleep(40 * A_MOMENT).await;
        ledger.unlock_buckets(NODE, &buckets([1])).await.expect("an answer");
        tokio::time::sleep(10 * A_MOMENT).await;
        assert_eq!(lockable(&ledger).await, buckets([1, 2, 3]), "the rebuild hangs");
    };
    tokio::select! {
        () = expire => {}
        never = locks.keep() => match never {},
    }
}
