//! Nodes that share a journal do not do one another's work.

use std::time::{Duration, Instant};

use seatkeeper_registry::redis::Settings;
use seatkeeper_registry::{Registry as _, Share};
use seatkeeper_testbed::redis::Redis;

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
        let read = other.registry.journal_read(Share::All, 10).await.expect("it is reached");
        assert!(read.entries.is_empty() || began.elapsed() >= LINGER, "it does the first one's work");
    }
    assert_eq!(other.registry.journal_depth(), 1, "it knows of it all the same");
    assert_eq!(one.registry.journal_read(Share::All, 10).await.expect("it is reached").entries.len(), 1);
    loop {
        let read = other.registry.journal_read(Share::All, 10).await.expect("it is reached");
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
    assert_eq!(other.registry.journal_read(Share::All, 10).await.expect("it is reached").entries.len(), 1);
}
