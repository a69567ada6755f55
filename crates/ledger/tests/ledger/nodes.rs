//! Nodes that live, and what they cannot reach.

use std::time::Duration;

use seatkeeper_core::{Bucket, BucketSet, Span};
use seatkeeper_ledger::NodeRow;
use uuid::Uuid;

use crate::story::ledger;

fn node(number: u128, unreachable: BucketSet) -> NodeRow {
    NodeRow { id: Uuid::from_u128(number), name: format!("node-{number}"), unreachable }
}

#[tokio::test]
async fn a_node_that_is_seen_sees_all_that_live() {
    let (_place, ledger) = ledger().await;
    let live = Span::from_secs(3_600);
    let some: BucketSet = Bucket::all().filter(|bucket| bucket.number() % 3 == 1).collect();
    let (one, two) = (node(1, BucketSet::default()), node(2, some));
    assert_eq!(ledger.node_seen(&two, live).await.unwrap(), std::slice::from_ref(&two));
    assert_eq!(ledger.node_seen(&one, live).await.unwrap(), [one.clone(), two.clone()]);
    let cut_off = node(1, BucketSet::ALL);
    assert_eq!(ledger.node_seen(&cut_off, live).await.unwrap(), [cut_off.clone(), two.clone()]);
    ledger.node_left(one.id).await.unwrap();
    assert_eq!(ledger.node_seen(&two, live).await.unwrap(), [two]);
}

#[tokio::test]
async fn a_node_that_was_not_seen_lately_does_not_live() {
    let (_place, ledger) = ledger().await;
    let (one, two) = (node(1, BucketSet::default()), node(2, BucketSet::default()));
    ledger.node_seen(&one, Span::from_secs(60)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(ledger.node_seen(&two, Span::from_millis(10)).await.unwrap(), [two]);
}

#[tokio::test]
async fn a_node_that_was_not_seen_for_an_hour_is_forgotten() {
    let (place, ledger) = ledger().await;
    for number in 1..=3 {
        ledger.node_seen(&node(number, BucketSet::default()), Span::from_secs(60)).await.unwrap();
    }
    let mut connection = place.connect().await;
    let long_ago = "UPDATE nodes SET seen_at = '2020-01-01T00:00:00.000+00:00' WHERE name <> 'node-1'";
    sqlx::query(long_ago).execute(&mut connection).await.unwrap();
    ledger.node_seen(&node(1, BucketSet::default()), Span::from_secs(60)).await.unwrap();
    let left: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM nodes").fetch_one(&mut connection).await.unwrap();
    assert_eq!(left, 1);
}
