//! Nodes with a shared journal leave each other's events alone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use seatkeeper_registry::redis::Settings;
use seatkeeper_registry::{Expiry as _, Journal as _};
use seatkeeper_testbed::clock::Clock;
use seatkeeper_testbed::redis::{Redis, RedisSetup};

use crate::calls::calls_of;
use crate::node::{Node, REACHED_MAX};

const LINGER: Duration = Duration::from_secs(2);

#[tokio::test]
async fn what_a_node_wrote_is_left_to_it_until_it_may_be_gone() {
    let redis = Redis::start();
    let settings =
        || Settings { journal_poll: Duration::ZERO, journal_linger: LINGER, ..Settings::default() };
    let one = Node::with(redis.url().parse().expect("a URL"), settings()).await;
    let other = one.beside(redis.url().parse().expect("a URL"), settings());
    let pool = one.pool().await;

    let began = Instant::now();
    one.admit(&pool, "ann").await;
    while began.elapsed() < LINGER / 2 {
        let read = other.registry.journal_read(10).await.expect("it is reached");
        assert!(read.entries.is_empty() || began.elapsed() >= LINGER, "it does the first one's work");
    }
    assert_eq!(other.registry.journal_depth(), 1, "it knows of it all the same");
    assert_eq!(one.registry.journal_read(10).await.expect("it is reached").entries.len(), 1);
    loop {
        let read = other.registry.journal_read(10).await.expect("it is reached");
        if !read.entries.is_empty() {
            break;
        }
        assert!(began.elapsed() < REACHED_MAX, "nobody does the work of one that is gone");
    }
    assert!(began.elapsed() >= LINGER);
}

#[tokio::test]
async fn what_a_client_waits_for_at_one_node_it_brings_to_the_ledger_whoever_wrote_it() {
    let redis = Redis::start();
    let settings = || Settings { journal_linger: Duration::from_secs(3_600), ..Settings::default() };
    let one = Node::with(redis.url().parse().expect("a URL"), settings()).await;
    let other = one.beside(redis.url().parse().expect("a URL"), settings());
    let pool = one.pool().await;
    one.admit(&pool, "ann").await;
    other.admit(&pool, "ann").await;
    assert_eq!(other.registry.journal_read(10).await.expect("it is reached").entries.len(), 1);
}

#[tokio::test]
async fn what_it_does_is_put_on_record_in_parts_as_they_are_asked_for() {
    let redis = Redis::start();
    let node = Node::on(&redis).await;
    let pool = node.pool().await;
    for _ in 0..3 {
        let session = node.admit(&pool, "ann").await;
        node.end(session).await.expect("it is reached");
    }
    let mut seqs = Vec::new();
    while seqs.len() < 6 {
        let read = node.registry.journal_read(4).await.expect("it is known");
        let through = read.entries.last().expect("there is more").receipt;
        seqs.extend(read.entries.into_iter().map(|entry| entry.event.seq));
        node.registry.journal_acknowledge(through).await.expect("it is reached");
    }
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6]);
}

/// The drain of a lone client waits for no read of the journal.
#[tokio::test]
async fn events_of_own_replies_need_no_read_of_redis() {
    let redis = Redis::start();
    let one = Node::on(&redis).await;
    let linger = Settings { journal_linger: Duration::ZERO, ..Settings::default() };
    let other = one.beside(redis.url().parse().expect("a URL"), linger);
    let pool = one.pool().await;
    let session = one.admit(&pool, "ann").await;
    one.claim(&pool, "bob").await.expect("it is refused");
    one.end(session).await.expect("it is reached");

    let kept = one.registry.journal_read(10).await.expect("it is reached").entries;
    assert_eq!(calls_of(&redis, "xrange"), 0, "the replies have every event");
    let read = other.registry.journal_read(10).await.expect("it is reached").entries;
    assert_eq!(calls_of(&redis, "xrange"), 1, "the other node has no reply");
    assert_eq!((kept.len(), &kept), (3, &read));

    one.registry.journal_acknowledge(kept[1].receipt).await.expect("it is reached");
    let rest = one.registry.journal_read(10).await.expect("it is reached").entries;
    assert_eq!(rest, kept[2..]);
    assert_eq!(calls_of(&redis, "xrange"), 1);
}

/// Replies return no events while many events wait for the ledger. A single read of the journal is enough.
#[tokio::test]
async fn events_of_a_drain_that_is_behind_are_read_from_the_journal() {
    const SESSIONS: u64 = 300;
    let redis = Redis::start();
    let one = Node::on(&redis).await;
    let pool = one.pool().await;
    for _ in 0..SESSIONS {
        let session = one.admit(&pool, "ann").await;
        one.end(session).await.expect("it is reached");
    }
    let read = one.registry.journal_read(1_000).await.expect("it is reached").entries;
    assert_eq!(calls_of(&redis, "xrange"), 1);
    let seqs: Vec<u64> = read.iter().map(|entry| entry.event.seq).collect();
    assert_eq!(seqs, (1..=2 * SESSIONS).collect::<Vec<_>>());
}

#[tokio::test]
async fn what_others_did_in_between_is_read_from_the_journal_in_its_place() {
    let redis = Redis::start();
    let one = Node::on(&redis).await;
    let other = one.beside(redis.url().parse().expect("a URL"), Settings::default());
    let pool = one.pool().await;
    let session = one.admit(&pool, "ann").await;
    other.claim(&pool, "bob").await.expect("it is refused");
    one.end(session).await.expect("it is reached");

    let read = one.registry.journal_read(10).await.expect("it is reached").entries;
    assert_eq!(read.iter().map(|entry| entry.event.seq).collect::<Vec<_>>(), [1, 2, 3]);
    one.registry.journal_acknowledge(read[2].receipt).await.expect("it is reached");
    let read = one.registry.journal_read(10).await.expect("it is reached");
    assert!(read.entries.is_empty(), "it brings the ledger what is there: {read:?}");
}

#[tokio::test]
async fn what_others_put_on_record_meanwhile_hides_nothing_that_waits() {
    let redis = Redis::start();
    let settings = || Settings {
        journal_poll: Duration::from_secs(3_600),
        // A bound so small that every acknowledgement goes to Redis at once.
        journal_events_max: 64,
        ..Settings::default()
    };
    let one = Node::with(redis.url().parse().expect("a URL"), settings()).await;
    let other = one.beside(redis.url().parse().expect("a URL"), settings());
    let pool = one.pool().await;
    let read = other.registry.journal_read(1).await.expect("it is reached");
    assert!(read.entries.is_empty());
    for _ in 0..10 {
        let session = one.admit(&pool, "ann").await;
        one.end(session).await.expect("it is reached");
    }
    other.admit(&pool, "bob").await;
    let read = one.registry.journal_read(20).await.expect("it is reached").entries;
    one.registry.journal_acknowledge(read[19].receipt).await.expect("it is reached");

    let read = other.registry.journal_read(1).await.expect("it is reached").entries;
    assert_eq!(read.iter().map(|entry| entry.event.seq).collect::<Vec<_>>(), [21]);
}

#[tokio::test]
async fn no_event_is_dated_before_a_low_watermark_though_the_clock_is_set_back() {
    let clock = Arc::new(Clock::new());
    let redis = RedisSetup::default().clock(&clock).start();
    let node = Node::on(&redis).await;
    let pool = node.pool().await;
    let ahead = Duration::from_secs(5);
    clock.advance(ahead);
    let watermark = node.registry.low_watermark().await.expect("it is reached");
    clock.set_back(ahead);
    node.admit(&pool, "ann").await;
    let read = node.registry.journal_read(10).await.expect("it is reached").entries;
    assert_eq!(read.len(), 1);
    assert!(read[0].event.at >= watermark, "{:?} is before {watermark:?}", read[0].event.at);
}

#[tokio::test]
async fn events_of_a_bucket_that_left_redis_do_not_count() {
    let redis = Redis::start();
    let node = Node::on(&redis).await;
    let (left, stays) = (node.pool().await, node.pool_called("video").await);
    assert_ne!(left.bucket(), stays.bucket());
    node.admit(&left, "ann").await;
    node.admit(&stays, "ann").await;
    assert_eq!(node.registry.journal_depth(), 2);
    node.leave(left.bucket());
    let read = node.registry.journal_read(10).await.expect("it is reached");
    assert_eq!((read.entries.len(), node.registry.journal_depth()), (1, 1));
}
