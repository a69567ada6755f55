//! Live nodes with their unreachable buckets, the readings that keep a node's lease, and the raises that a node
//! would not notice.

use std::collections::BTreeSet;
use std::time::Duration;

use seatkeeper_core::{Bucket, BucketSet, Span};
use seatkeeper_ledger::buckets::{BucketMode, EpochRaise};
use seatkeeper_ledger::nodes::{KnownNode, NodeRow};
use seatkeeper_ledger::{Error, Ledger};
use uuid::Uuid;

use crate::story::ledger;

fn node(number: u128, unreachable: BucketSet) -> NodeRow {
    NodeRow {
        id: Uuid::from_u128(number),
        name: format!("node-{number}"),
        unreachable,
        named: BTreeSet::new(),
    }
}

/// Returns a node that extends its lease by the word of these nodes.
fn naming(number: u128, named: &[u128]) -> NodeRow {
    NodeRow {
        named: named.iter().copied().map(Uuid::from_u128).collect(),
        ..node(number, BucketSet::default())
    }
}

/// Lets a node read twice, so that the node has a lease.
async fn has_lease(ledger: &Ledger, node: &NodeRow) {
    ledger.node_reads(node).await.unwrap();
    assert!(ledger.node_reads(node).await.unwrap().buckets.is_some());
}

/// Raises the epoch of a bucket by the hand of a node.
async fn raises(ledger: &Ledger, node: &NodeRow) -> Result<usize, Error> {
    let bucket = Bucket::new(1).unwrap();
    let seen = ledger.buckets().await.unwrap()[1].epoch;
    let raise = EpochRaise { bucket, seen, next: seen + 1 };
    Ok(ledger.raise(node.id, &[raise], BucketMode::Ledger, None).await?.len())
}

/// Writes the node's row and returns the rows of all remembered nodes.
async fn seen(ledger: &Ledger, node: &NodeRow) -> Vec<NodeRow> {
    ledger.node_reads(node).await.unwrap().nodes.into_iter().map(|known| known.row).collect()
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
    let known = ledger.node_reads(&two).await.unwrap().nodes;
    assert!(ago(&known[0]) >= pause && ago(&known[1]) < ago(&known[0]), "{known:?}");
}

#[tokio::test]
async fn a_node_that_was_not_seen_for_a_day_is_forgotten() {
    let (place, ledger) = ledger().await;
    for number in 1..=3 {
        seen(&ledger, &node(number, BucketSet::default())).await;
    }
    let mut connection = place.connect().await;
    let long_ago = "UPDATE nodes SET seen_at = '2020-01-01T00:00:00.123+00:00' WHERE name <> 'node-1'";
    sqlx::query(long_ago).execute(&mut connection).await.unwrap();
    seen(&ledger, &node(1, BucketSet::default())).await;
    let left: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM nodes").fetch_one(&mut connection).await.unwrap();
    assert_eq!(left, 1);
}

#[tokio::test]
async fn a_node_reads_the_buckets_only_where_an_earlier_reading_made_it_known() {
    let (place, ledger) = ledger().await;
    let node = node(1, BucketSet::default());
    let first = ledger.node_reads(&node).await.unwrap();
    assert_eq!(first.buckets, None, "who raises an epoch now may not know the node");
    let second = ledger.node_reads(&node).await.unwrap();
    assert_eq!(second.buckets, Some(ledger.buckets().await.unwrap()));
    let rows = |nodes: Vec<KnownNode>| nodes.into_iter().map(|node| node.row).collect::<Vec<_>>();
    assert_eq!(rows(second.nodes), rows(first.nodes));

    let mut connection = place.connect().await;
    let long_ago = "UPDATE nodes SET seen_at = '2020-01-01T00:00:00.123+00:00'";
    sqlx::query(long_ago).execute(&mut connection).await.unwrap();
    assert_eq!(ledger.node_reads(&node).await.unwrap().buckets, None, "others may have forgotten the node");
    assert!(ledger.node_reads(&node).await.unwrap().buckets.is_some());
}

#[tokio::test]
async fn a_node_raises_no_epoch_behind_the_back_of_a_node_that_may_go_on_without_the_ledger() {
    let (_place, ledger) = ledger().await;
    let (old, new) = (naming(1, &[1]), naming(2, &[1, 2]));
    has_lease(&ledger, &old).await;
    has_lease(&ledger, &new).await;
    let refused = raises(&ledger, &new).await;
    assert!(matches!(&refused, Err(Error::RaiseOverlooked { nodes }) if *nodes == ["node-1"]), "{refused:?}");
    assert_eq!(raises(&ledger, &old).await.unwrap(), 1, "the new node names the old one");
    has_lease(&ledger, &naming(1, &[1, 2])).await;
    assert_eq!(raises(&ledger, &new).await.unwrap(), 1, "the old node knows of the new one");
}

#[tokio::test]
async fn a_node_without_a_lease_and_a_node_without_a_roll_hold_back_no_raise() {
    let (_place, ledger) = ledger().await;
    let raiser = naming(1, &[1]);
    has_lease(&ledger, &raiser).await;
    has_lease(&ledger, &node(2, BucketSet::default())).await;
    assert_eq!(ledger.node_reads(&naming(3, &[3])).await.unwrap().buckets, None);
    assert_eq!(raises(&ledger, &raiser).await.unwrap(), 1);
    assert!(ledger.node_reads(&naming(3, &[3])).await.unwrap().buckets.is_some());
    assert!(raises(&ledger, &raiser).await.is_err(), "the third node has a lease now");
}

#[tokio::test]
async fn a_node_raises_epochs_only_while_it_is_live() {
    let (place, ledger) = ledger().await;
    let raiser = naming(1, &[1]);
    assert!(matches!(raises(&ledger, &raiser).await, Err(Error::RaiserNotLive)));
    has_lease(&ledger, &raiser).await;
    assert_eq!(raises(&ledger, &raiser).await.unwrap(), 1);
    let long_ago = "UPDATE nodes SET seen_at = '2020-01-01T00:00:00.123+00:00'";
    sqlx::query(long_ago).execute(&mut place.connect().await).await.unwrap();
    assert!(matches!(raises(&ledger, &raiser).await, Err(Error::RaiserNotLive)));
}

#[tokio::test]
async fn a_node_that_was_seen_meanwhile_is_not_forgotten() {
    let (_place, ledger) = ledger().await;
    let (old, new) = (naming(1, &[1]), naming(2, &[1, 2]));
    has_lease(&ledger, &old).await;
    has_lease(&ledger, &new).await;
    let known: Vec<_> =
        ledger.nodes().await.unwrap().into_iter().filter(|known| known.row.id == old.id).collect();
    tokio::time::sleep(Duration::from_millis(5)).await;
    has_lease(&ledger, &old).await;
    assert_eq!(ledger.forget_nodes(&known).await.unwrap(), 0);
    assert!(raises(&ledger, &new).await.is_err());
    let known: Vec<_> =
        ledger.nodes().await.unwrap().into_iter().filter(|known| known.row.id == old.id).collect();
    assert_eq!(ledger.forget_nodes(&known).await.unwrap(), 1);
    assert_eq!(raises(&ledger, &new).await.unwrap(), 1);
    assert_eq!(ledger.node_reads(&old).await.unwrap().buckets, None, "a forgotten node is not known");
}

/// Longer than a test takes.
const LOCK_TIME: Span = Span::from_secs(3_600);

#[tokio::test]
async fn a_node_that_leaves_or_is_forgotten_holds_no_bucket() {
    let (_place, ledger) = ledger().await;
    let [leaving, silent, other] = [1, 2, 3].map(|number| node(number, BucketSet::default()));
    // The locks of the two nodes alternate, so that a release must keep to the order of buckets.
    let (even, odd): (Vec<_>, Vec<_>) = Bucket::all().partition(|bucket| bucket.number() % 2 == 0);
    for (node, buckets) in [(&leaving, &even), (&silent, &odd)] {
        seen(&ledger, node).await;
        assert_eq!(ledger.lock_buckets(node.id, buckets, LOCK_TIME).await.unwrap(), *buckets);
    }
    let all: Vec<_> = Bucket::all().collect();
    assert_eq!(ledger.lock_buckets(other.id, &all, LOCK_TIME).await.unwrap(), []);
    ledger.node_left(leaving.id).await.unwrap();
    assert_eq!(ledger.lock_buckets(other.id, &all, LOCK_TIME).await.unwrap(), even);
    let known = ledger.nodes().await.unwrap();
    assert_eq!(ledger.forget_nodes(&known).await.unwrap(), 1);
    assert_eq!(ledger.lock_buckets(other.id, &all, LOCK_TIME).await.unwrap(), all);
}

#[tokio::test]
async fn a_node_that_was_seen_meanwhile_keeps_its_locks() {
    let (_place, ledger) = ledger().await;
    let [slow, other] = [1, 2].map(|number| node(number, BucketSet::default()));
    seen(&ledger, &slow).await;
    let known = ledger.nodes().await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    seen(&ledger, &slow).await;
    let buckets = [Bucket::new(1).unwrap()];
    ledger.lock_buckets(slow.id, &buckets, LOCK_TIME).await.unwrap();
    assert_eq!(ledger.forget_nodes(&known).await.unwrap(), 0);
    assert_eq!(ledger.lock_buckets(other.id, &buckets, LOCK_TIME).await.unwrap(), []);
}
