//! A grant is answered once enough replicas have the claim.

use std::time::{Duration, Instant};

use seatkeeper_registry::Error;
use seatkeeper_registry::redis::Settings;
use seatkeeper_testbed::redis::Redis;

use crate::node::{Node, REACHED_MAX};

/// Number of renewals of a session while a claim waits for a replica.
const RENEWALS: usize = 20;

#[tokio::test]
async fn a_seat_is_granted_once_a_replica_knows_it_and_nobody_else_waits_for_that() {
    let primary = Redis::start();
    let replica = Redis::replica_of(&primary);
    let settings = Settings { wait_replicas: 1, ..Settings::default() };
    let node = Node::with(primary.url().parse().expect("a URL"), settings).await;
    let (first, second) = (node.pool().await, node.pool_called("film").await);
    let ann = node.admit(&first, "ann").await;
    let keys: u64 = replica.ask(redis::cmd("DBSIZE"));
    assert!(keys > 0, "the replica knows of it");

    replica.pause();
    let renewing = async {
        let started = Instant::now();
        for _ in 0..RENEWALS {
            node.renew(ann).await.expect("it is live");
        }
        started.elapsed()
    };
    let asking = async {
        let started = Instant::now();
        (node.claim(&second, "bob").await, started.elapsed())
    };
    let ((refused, waited), renewed) = tokio::join!(asking, renewing);
    assert!(matches!(refused, Err(Error::TimedOut)), "nobody but the primary knows it: {refused:?}");
    assert!(renewed < waited, "{RENEWALS} renewals took {renewed:?} while bob waited for {waited:?}");
    let denied = node.claim(&second, "cid").await;
    assert!(denied.is_ok(), "the seat may be bob's, and a denial waits for nobody: {denied:?}");

    replica.resume();
    let resumed = Instant::now();
    while let Err(error) = node.claim(&second, "bob").await {
        assert!(resumed.elapsed() < REACHED_MAX, "the replica is back: {error:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
