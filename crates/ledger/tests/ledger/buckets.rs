//! Epochs of buckets fence off stale events, and locks of buckets select a rebuilding node.

use std::time::Duration;

use seatkeeper_core::{Bucket, Event, Span, epoch_after};
use seatkeeper_ledger::buckets::{BucketMode, EpochRaise, StaleBucket};
use seatkeeper_ledger::{Error, Ledger};
use tokio::sync::watch;
use uuid::Uuid;

use crate::place::TestLedger;
use crate::story::{EPOCH, Story, ledger, licensed, raiser};

/// A time limit long enough for a busy machine.
const DEADLINE: Duration = Duration::from_secs(30);

fn bucket(number: u16) -> Bucket {
    Bucket::new(number).unwrap()
}

/// Returns four nodes that want all buckets, each in a different order.
async fn rivals(place: &TestLedger, ledger: &Ledger) -> Vec<(Uuid, Ledger, Vec<Bucket>)> {
    let mut rivals = Vec::new();
    for node in 0..4 {
        let mut buckets: Vec<_> = Bucket::all().collect();
        buckets.rotate_left(node * 64);
        rivals.push((Uuid::from_u128(node as u128), place.another(ledger).await, buckets));
    }
    rivals
}

/// Returns stories of two pools in different buckets.
async fn two_stories(ledger: &Ledger) -> (Story, Story) {
    let first = Story::new(&licensed(ledger, 9).await);
    loop {
        let second = Story::new(&licensed(ledger, 9).await);
        if second.pool.bucket() != first.pool.bucket() {
            return (first, second);
        }
    }
}

#[tokio::test]
async fn an_epoch_is_raised_from_the_one_that_was_seen_and_from_no_other() {
    let (_place, ledger) = ledger().await;
    let raise = |number, seen| EpochRaise { bucket: bucket(number), seen, next: EPOCH + 9 };
    let seen = [raise(255, EPOCH), raise(7, EPOCH), raise(8, EPOCH + 1), raise(9, EPOCH - 1)];
    let raised =
        ledger.raise(raiser(&ledger).await, &seen, BucketMode::Ledger, Some("redis:1")).await.unwrap();
    let raised: Vec<_> = raised.into_iter().map(|raised| raised.bucket).collect();
    assert_eq!(raised, [bucket(7), bucket(255)]);
    assert_eq!(
        ledger.raise(raiser(&ledger).await, &seen[..2], BucketMode::Deny, None).await.unwrap(),
        [],
        "somebody was faster"
    );

    let rows = ledger.buckets().await.unwrap();
    assert!(rows.iter().map(|row| row.bucket).eq(Bucket::all()));
    for row in rows {
        let raised = raised.contains(&row.bucket);
        let told = (row.epoch, row.mode, row.identity.as_deref());
        let then = (EPOCH + 9, BucketMode::Ledger, Some("redis:1"));
        assert_eq!(told, if raised { then } else { (EPOCH, BucketMode::Registry, Some("memory:1")) });
    }
    assert_eq!(ledger.raise_epoch("memory:2", 7).await.unwrap(), epoch_after(EPOCH + 9, 7));
}

#[tokio::test]
async fn a_batch_with_events_of_another_epoch_is_refused_whole() {
    let (_place, ledger) = ledger().await;
    let (mut old, mut current) = two_stories(&ledger).await;
    let raise = EpochRaise { bucket: old.pool.bucket(), seen: EPOCH, next: EPOCH + 1 };
    ledger.raise(raiser(&ledger).await, &[raise], BucketMode::Registry, None).await.unwrap();
    let (of_old, of_current) = (old.admit("one"), current.admit("one"));
    let refused = ledger.apply(&[of_current.1.clone(), of_old.1.clone()]).await;
    let stale = [StaleBucket { bucket: old.pool.bucket(), epoch: EPOCH + 1 }];
    assert!(matches!(&refused, Err(Error::StaleEpoch { buckets }) if *buckets == stale), "{refused:?}");
    assert_eq!(ledger.session(of_current.0).await.unwrap(), None);

    let ahead = Event { epoch: EPOCH + 2, ..of_old.1.clone() };
    let refused = ledger.apply(&[ahead]).await;
    assert!(matches!(refused, Err(Error::StaleEpoch { .. })), "{refused:?}");
    ledger.apply(&[of_current.1]).await.unwrap();
    ledger.apply(&[Event { epoch: EPOCH + 1, ..of_old.1 }]).await.unwrap();
    assert!(ledger.session(of_old.0).await.unwrap().is_some());
}

/// Invariant I1, as far as the ledger ensures it: after a raise, no event of an older epoch is recorded.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_an_older_epoch_is_recorded_after_a_raise() {
    const RAISES: u64 = 40;
    /// Events recorded between two raises. There are more events than nodes, because each node may have been
    /// about to apply an event.
    const APPLIED_BETWEEN: u64 = 4;
    let (place, ledger) = ledger().await;
    let (all_applied, is_over) = (watch::Sender::new(0), watch::Sender::new(false));
    let mut nodes = Vec::new();
    for _ in 0..3 {
        let (node, mut story) = (place.another(&ledger).await, Story::new(&licensed(&ledger, 9_999).await));
        let (all_applied, is_over) = (all_applied.clone(), is_over.subscribe());
        nodes.push(tokio::spawn(async move {
            let (mut applied, mut refused) = (0, 0);
            let mut epoch = EPOCH;
            let mut next = story.admit("0").1;
            while !*is_over.borrow() {
                match node.apply(&[Event { epoch, ..next.clone() }]).await {
                    Ok(_) => {
                        applied += 1;
                        all_applied.send_modify(|all| *all += 1);
                        next = story.admit(&applied.to_string()).1;
                    }
                    Err(Error::StaleEpoch { buckets }) => {
                        refused += 1;
                        // The node is slow to learn the new epoch: every second retry repeats the old epoch.
                        epoch = if refused % 2 == 0 { buckets[0].epoch } else { epoch };
                    }
                    Err(error) => panic!("{error:?}"),
                }
            }
            (applied, refused)
        }));
    }
    let mut counted = Vec::new();
    let mut observer = place.connect().await;
    for epoch in EPOCH..EPOCH + RAISES {
        let before = *all_applied.borrow();
        let go_on =
            async { all_applied.subscribe().wait_for(|all| *all >= before + APPLIED_BETWEEN).await.is_ok() };
        assert!(tokio::time::timeout(DEADLINE, go_on).await.expect("nodes that learn the epoch"));
        let all: Vec<_> =
            Bucket::all().map(|bucket| EpochRaise { bucket, seen: epoch, next: epoch + 1 }).collect();
        assert_eq!(
            ledger.raise(raiser(&ledger).await, &all, BucketMode::Registry, None).await.unwrap().len(),
            256
        );
        counted.push(up_to(&mut observer, epoch).await);
    }
    is_over.send_replace(true);
    let (mut applied, mut refused) = (0, 0);
    for node in nodes {
        let told = node.await.unwrap();
        (applied, refused) = (applied + told.0, refused + told.1);
    }
    // Each node must be refused twice before applying an event in a new epoch.
    assert!(applied >= RAISES * APPLIED_BETWEEN, "{applied} applied");
    assert!(refused >= 2 * (RAISES - 1), "{refused} refused");
    for (epoch, then) in (EPOCH..).zip(counted) {
        assert_eq!(up_to(&mut observer, epoch).await, then, "records up to epoch {epoch}");
    }
}

/// Counts the session events on record up to an epoch.
async fn up_to(observer: &mut crate::place::Connection, epoch: u64) -> i64 {
    let count = "SELECT COUNT(*) FROM audit_log WHERE stream = 'session' AND epoch <= $1";
    sqlx::query_scalar(count).bind(epoch as i64).fetch_one(observer).await.unwrap()
}

#[tokio::test]
async fn a_bucket_is_locked_for_one_node_until_it_gives_it_back_or_its_time_is_over() {
    let (_place, ledger) = ledger().await;
    let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let (long, both) = (Span::from_secs(3_600), [bucket(3), bucket(200)]);
    assert_eq!(ledger.lock_buckets(one, &[bucket(200)], long).await.unwrap(), [bucket(200)]);
    assert_eq!(ledger.lock_buckets(other, &both, Span::ZERO).await.unwrap(), [bucket(3)]);
    assert_eq!(ledger.lock_buckets(one, &both, long).await.unwrap(), both, "the other's time was over");
    assert_eq!(ledger.lock_buckets(other, &both, long).await.unwrap(), []);
    ledger.unlock_buckets(other, &both).await.unwrap();
    assert_eq!(ledger.lock_buckets(other, &both, long).await.unwrap(), [], "they were not its own");
    ledger.unlock_buckets(one, &[bucket(3)]).await.unwrap();
    assert_eq!(ledger.lock_buckets(other, &both, long).await.unwrap(), [bucket(3)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_nodes_that_want_the_same_buckets_each_is_one_nodes() {
    let (place, ledger) = ledger().await;
    let mut racing = Vec::new();
    for (id, ledger, buckets) in rivals(&place, &ledger).await {
        racing.push(tokio::spawn(async move {
            ledger.lock_buckets(id, &buckets, Span::from_secs(60)).await.unwrap()
        }));
    }
    let mut taken = Vec::new();
    for race in racing {
        taken.extend(race.await.unwrap());
    }
    taken.sort_unstable();
    assert!(taken.into_iter().eq(Bucket::all()));
}

#[tokio::test]
async fn who_gives_locks_back_and_who_takes_them_wait_for_one_another_but_not_for_ever() {
    let (place, ledger) = ledger().await;
    let mut racing = Vec::new();
    for (id, ledger, buckets) in rivals(&place, &ledger).await {
        racing.push(tokio::spawn(async move {
            for _ in 0..20 {
                ledger.lock_buckets(id, &buckets, Span::from_secs(60)).await.unwrap();
                ledger.unlock_buckets(id, &buckets).await.unwrap();
            }
        }));
    }
    for race in racing {
        race.await.unwrap();
    }
}
