//! Journal entries that a node cannot decode: each holds up its own bucket, and is never skipped.

use std::time::{Duration, Instant};

use seatkeeper_core::{PoolId, RegistryTime};
use seatkeeper_registry::redis::Settings;
use seatkeeper_registry::{Error, Journal as _, JournalRead, Rebuild as _, Receipt};
use seatkeeper_testbed::redis::Redis;

use crate::node::{Node, REACHED_MAX};

/// Surveys the heads for each read, and leaves no event to other nodes.
fn at_once() -> Settings {
    Settings { journal_poll: Duration::ZERO, journal_linger: Duration::ZERO, ..Settings::default() }
}

async fn read(node: &Node) -> JournalRead {
    node.registry.journal_read(100).await.expect("an entry of one bucket is no failure of a read")
}

/// Reads the journals, and acknowledges all events. Returns the pool and the number of each event.
async fn drain(node: &Node) -> Vec<(PoolId, u64)> {
    let mut drained = Vec::new();
    for entry in read(node).await.entries {
        node.registry.journal_acknowledge(entry.receipt).await.expect("it is reached");
        drained.push((entry.event.pool, entry.event.seq));
    }
    drained
}

#[tokio::test]
async fn an_unreadable_entry_holds_up_the_events_of_its_bucket_alone() {
    let redis = Redis::start();
    let node = Node::with(redis.url().parse().expect("a URL"), at_once()).await;
    let (held_up, other) = (node.pool().await, node.pool_called("video").await);
    assert_ne!(held_up.bucket(), other.bucket());
    let ann = node.admit(&held_up, "ann").await;
    let foreign = redis.add_foreign_entry(held_up.bucket().number());
    node.end(ann).await.expect("it is reached");

    assert_eq!(drain(&node).await, [(held_up.clone(), 1)], "events before the entry are read");
    let bob = node.admit(&other, "bob").await;
    assert_eq!(read(&node).await.entries.len(), 1);
    let refused = node.claim(&held_up, "carl").await;
    assert!(matches!(refused, Err(Error::UnreadableEntry { .. })), "it would wait in vain: {refused:?}");
    let read_beside = read(&node).await;
    assert_eq!(read_beside.entries.len(), 1, "{read_beside:?}");
    assert_eq!(read_beside.entries[0].event.pool, other);
    let acknowledged: Vec<_> = read_beside.acknowledged.iter().map(|receipt| receipt.bucket).collect();
    assert!(acknowledged.contains(&held_up.bucket()), "{read_beside:?}");
    assert_eq!(drain(&node).await, [(other.clone(), 1)]);
    assert_eq!(drain(&node).await, []);
    node.end(bob).await.expect("it is reached");
    assert_eq!(drain(&node).await, [(other, 2)]);

    let [entry] = &node.registry.unreadable_entries()[..] else { panic!("one entry is in the way") };
    assert_eq!((entry.bucket, &entry.stream, &entry.id), (held_up.bucket(), &foreign.journal, &foreign.id));
}

#[tokio::test]
async fn a_read_that_ends_before_an_unreadable_entry_does_not_clear_it() {
    let redis = Redis::start();
    let node = Node::with(redis.url().parse().expect("a URL"), at_once()).await;
    let pool = node.pool_of("video", 300).await;
    for number in 0..300 {
        node.admit(&pool, &format!("machine-{number}")).await;
    }
    redis.add_foreign_entry(pool.bucket().number());
    for (max, is_whole) in [(1_000, true), (1, false)] {
        let read = node.registry.journal_read(max).await.expect("it is reached");
        assert_eq!(read.entries.len() == 300, is_whole, "{} events", read.entries.len());
        assert_eq!(node.registry.unreadable_entries().len(), 1);
    }
}

/// An answer may wait for the record of the missing entry, and must not be sent when later events are on record.
#[tokio::test]
async fn a_missing_entry_holds_up_the_events_behind_it() {
    let redis = Redis::start();
    let node = Node::with(redis.url().parse().expect("a URL"), at_once()).await;
    let pool = node.pool().await;
    let bucket = pool.bucket();
    let ann = node.admit(&pool, "ann").await;
    let first = redis.add_foreign_entry(bucket.number());
    node.end(ann).await.expect("it is reached");
    let last = redis.add_foreign_entry(bucket.number());

    redis.delete_entry(&first);
    assert_eq!(drain(&node).await, [(pool, 1)]);
    let ids = async || {
        read(&node).await;
        let entries = node.registry.unreadable_entries().into_iter();
        entries.map(|entry| entry.id).collect::<Vec<_>>()
    };
    assert_eq!(ids().await, [first.id]);
    let through = Receipt { bucket, epoch: 1, position: 3 };
    node.registry.journal_acknowledge(through).await.expect("it is reached");
    redis.delete_entry(&last);
    assert_eq!(ids().await, [last.id], "an entry at the end of the journal is missed as well");
}

/// Nodes of a newer version record the entry.
#[tokio::test]
async fn an_unreadable_entry_that_another_node_records_is_out_of_the_way() {
    let redis = Redis::start();
    let old = Node::with(redis.url().parse().expect("a URL"), at_once()).await;
    let newer = old.beside(redis.url().parse().expect("a URL"), at_once());
    let pool = old.pool().await;
    let ann = old.admit(&pool, "ann").await;
    redis.add_foreign_entry(pool.bucket().number());
    assert_eq!(drain(&old).await, [(pool.clone(), 1)]);
    assert_eq!(drain(&old).await, []);
    assert_eq!(old.registry.unreadable_entries().len(), 1);

    let through = Receipt { bucket: pool.bucket(), epoch: 1, position: 2 };
    read(&newer).await;
    newer.registry.journal_acknowledge(through).await.expect("it is reached");
    let began = Instant::now();
    while !old.registry.unreadable_entries().is_empty() {
        assert!(began.elapsed() < REACHED_MAX, "the recorded entry is still in the way");
        read(&newer).await;
        read(&old).await;
    }
    old.end(ann).await.expect("it is reached");
    assert_eq!(drain(&old).await, [(pool, 2)]);
}

#[tokio::test]
async fn a_rebuild_skips_no_unreadable_entry() {
    let redis = Redis::start();
    let node = Node::on(&redis).await;
    let pool = node.pool().await;
    let bucket = pool.bucket();
    let ann = node.admit(&pool, "ann").await;
    let foreign = redis.add_foreign_entry(bucket.number());
    node.end(ann).await.expect("it is reached");
    let other = node.beside(redis.url().parse().expect("a URL"), at_once());
    read(&other).await;
    assert_eq!(other.registry.unreadable_entries().len(), 1);

    node.registry.rebuild_begin(bucket, 2).await.expect("it is reached");
    let next = async |after| node.registry.rebuild_journal(bucket, 2, after, 100).await;
    let before = next(None).await.expect("events before the entry are read");
    assert_eq!(before.iter().map(|entry| entry.event.seq).collect::<Vec<_>>(), [1]);
    let after = Some(before[0].receipt);
    let refused = next(after).await;
    let Err(Error::UnreadableEntry { bucket: named, entry }) = refused else { panic!("{refused:?}") };
    assert_eq!((named, entry), (bucket, foreign.id.clone()));
    assert_eq!(node.registry.unreadable_entries().len(), 1);

    redis.delete_entry(&foreign);
    let behind = next(after).await.expect("the entry is deleted");
    assert_eq!(behind.iter().map(|entry| entry.event.seq).collect::<Vec<_>>(), [2]);
    node.registry.rebuild_clear(bucket, 2, RegistryTime::default()).await.expect("it has begun");
    assert_eq!(node.registry.unreadable_entries(), []);
    node.serve(3).await;
    read(&other).await;
    assert_eq!(other.registry.unreadable_entries(), [], "another node has rebuilt the bucket");
}
