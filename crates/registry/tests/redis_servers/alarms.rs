//! Where Redis tells of keys that expire, what is due is heard of at once; where it does not, nothing is missed.

use std::time::{Duration, Instant};

use seatkeeper_core::{BucketSet, Span};
use seatkeeper_registry::Registry as _;
use seatkeeper_registry::redis::ServerSettings;
use seatkeeper_testbed::redis::{Redis, RedisCluster, RedisSetup};

use crate::node::{Node, REACHED_MAX};

const TTL: Span = Span::from_millis(900);

/// Long enough for an alarm to have gone off, if it does.
const HEARD_MAX: Duration = Duration::from_secs(2);

fn that_tells() -> RedisSetup {
    RedisSetup::default().setting("notify-keyspace-events Ex")
}

#[tokio::test]
async fn what_is_due_is_heard_of() {
    let redis = that_tells().start();
    is_heard_of(redis.url().parse().expect("a URL")).await;
}

#[tokio::test]
async fn what_is_due_is_heard_of_from_every_master_of_a_cluster() {
    let cluster = RedisCluster::start(3, &that_tells());
    is_heard_of(cluster.url().parse().expect("a URL")).await;
}

#[tokio::test]
async fn where_nothing_is_told_what_is_due_is_found_by_looking() {
    let redis = Redis::start();
    let node = Node::on(&redis).await;
    assert_eq!(heard(&node, "photo").await, None);
}

async fn is_heard_of(servers: ServerSettings) {
    let node = Node::over(servers).await;
    // So that each master has one of them.
    for pool in ["photo", "video", "sound", "text", "maths", "chess"] {
        let started = Instant::now();
        // On a busy machine it may not be looked at before it is due, nor be listened to yet.
        while heard(&node, pool).await.is_none() {
            assert!(started.elapsed() < REACHED_MAX, "nothing is heard of {pool}");
        }
    }
}

/// Lets a session of a pool fall silent, and says which buckets were heard of. Its seat is on record as free, whether
/// anything was heard or not.
async fn heard(node: &Node, pool: &str) -> Option<BucketSet> {
    let pool = node.pool_called(pool).await;
    node.claim_for(&pool, "ann", TTL).await.expect("the seat is free");
    let due = node.registry.due(pool.bucket()).await.expect("it is reached").expect("a pool is there");
    let heard = tokio::time::timeout(HEARD_MAX, node.registry.due_stirred()).await.ok();
    while node.registry.now().await.expect("it is reached") < due {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(node.registry.sweep(pool.bucket(), 10).await.expect("it is reached").ended, 1);
    heard.filter(|buckets| buckets.contains(pool.bucket()))
}
