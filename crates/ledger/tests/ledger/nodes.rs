//! Live nodes with their unreachable buckets, and the readings that keep a node's lease.

use std::time::Duration;

use seatkeeper_core::{Bucket, BucketSet};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::nodes::{KnownNode, NodeRow};
use uuid::Uuid;

use crate::story::ledger;

fn node(number: u128, unreachable: BucketSet) -> NodeRow {
    NodeRow { id: Uuid::from_u128(number), name: format!("node-{number}"), unreachable }
}

/// Writes the node's row and returns the rows of all remembered nodes.
async fn seen(ledger: &Ledger, node: &NodeRow) -> Vec<NodeRow> {
    ledger.node_seen(node).await.unwrap().into_iter().map(|known| known.row).collect()
}

#[tokio::test]
async fn a_node_that_is_seen_sees_all_that_live() {
    let (_place, ledger) = ledger().await;
    let some: BucketSet = Bucket::all().filter(|bucket| bucket.number() % 3 == 1).collect();
    let (one, two) = (node(1, BucketSet::default()), node(2, some));
    assert_eq!(seen(&ledger, &two).await, std::slice::from_ref(&two));
    assert_eq!(seen(&ledger, &one).await, [one.clone(), two.clone()]);
    let cut_off = node(1, BucketSet::ALL);
    assert_eq!(seen(&ledger, &cut_off).await, [cut_off.clone(), two.clone()]);
    ledger.node_left(one.id).await.unwrap();
    assert_eq!(seen(&ledger, &two).await, [two]);
}

#[tokio::test]
async fn a_node_is_told_how_long_ago_each_was_seen() {
    let (_place, ledger) = ledger().await;
    let (one, two) = (node(1, BucketSet::default()), node(2, BucketSet::default()));
    seen(&ledger, &one).await;
    let pause = Duration::from_millis(20);
    tokio::time::sleep(pause).await;
    let ago = |known: &KnownNode| Duration::from_millis(known.seen_ago.as_millis());
    let known = ledger.node_seen(&two).await.unwrap();
    assert!(ago(&known[0]) >= pause && ago(&known[1]) < ago(&known[0]), "{known:?}");
}

#[tokio::test]
async fn a_node_that_was_not_seen_for_an_hour_is_forgotten() {
    let (place, ledger) = ledger().await;
    for number in 1..=3 {
        seen(&ledger, &node(number, BucketSet::default())).await;
    }
    let mut connection = place.connect().await;
    let long_ago = "UPDATE nodes SET seen_at = '2020-01-01T00:00:00.000+00:00' WHERE name <> 'node-1'";
    sqlx::query(long_ago).execute(&mut connection).await.unwrap();
    seen(&ledger, &node(1, BucketSet::default())).await;
    let left: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM nodes").fetch_one(&mut connection).await.unwrap();
    assert_eq!(left, 1);
}

#[tokio::test]
async fn a_node_reads_the_buckets_only_where_an_earlier_reading_made_it_known_lately() {
    let (place, ledger) = ledger().await;
    let node = node(1, BucketSet::default());
    let first = ledger.node_reads(&node).await.unwrap();
    assert_eq!(first.buckets, None, "who raises an epoch now may not know the node");
    let second = ledger.node_reads(&node).await.unwrap();
    assert_eq!(second.buckets, Some(ledger.buckets().await.unwrap()));
    assert_eq!(second.nodes, first.nodes);

    let mut connection = place.connect().await;
    let long_ago = "UPDATE nodes SET seen_at = '2020-01-01T00:00:00.000+00:00'";
    sqlx::query(long_ago).execute(&mut connection).await.unwrap();
    assert_eq!(ledger.node_reads(&node).await.unwrap().buckets, None, "others may have forgotten the node");
    assert!(ledger.node_reads(&node).await.unwrap().buckets.is_some());
}
