//! Broken connections, and servers with flushed scripts or changed settings.

use std::time::{Duration, Instant};

use seatkeeper_registry::{Ended, Error};
use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::{Memory, Redis};

use crate::node::{Node, REACHED_MAX};

#[tokio::test]
async fn a_connection_that_is_killed_is_made_again() {
    let redis = Redis::start();
    let node = Node::on(&redis).await;
    let pool = node.pool().await;
    let ann = node.admit(&pool, "ann").await;
    for _ in 0..3 {
        redis.ask::<u32>(redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").take());
        node.renew_soon(ann).await;
    }
}

/// A retry of the call finds the session ended by the first attempt. The caller must not be told that
/// somebody else ended the session.
#[tokio::test]
async fn an_end_whose_answer_is_lost_has_an_unknown_outcome() {
    let redis = Redis::start();
    let proxy = Proxy::start(([127, 0, 0, 1], redis.port()).into(), 0).await;
    let node = Node::over(format!("redis://{}", proxy.address()).parse().expect("a URL")).await;
    let (pool, other) = (node.pool().await, node.pool_called("film").await);
    let ann = node.admit(&pool, "ann").await;
    // From here on the server has the script.
    let bob = node.admit(&other, "bob").await;
    assert!(matches!(node.end(bob).await, Ok(Ended::Now { .. })));
    let connection: u64 = node.servers.query("key", redis::cmd("CLIENT").arg("ID")).await.expect("an answer");
    proxy.set(Network::SwallowsAnswers(1.0));
    let (ended, ()) = tokio::join!(node.end(ann), async {
        let (started, look) =
            (Instant::now(), redis::cmd("CLIENT").arg("LIST").arg("ID").arg(connection).take());
        while !redis.ask::<String>(look.clone()).is_empty() {
            assert!(started.elapsed() < REACHED_MAX, "the answer is swallowed, and the connection with it");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        proxy.set(Network::Well);
    });
    assert!(matches!(ended, Err(Error::TimedOut)), "nobody knows who ended it: {ended:?}");
    assert_eq!(node.end(ann).await.expect("an answer"), Ended::Missing);
}

#[tokio::test]
async fn a_server_that_was_away_for_a_while_is_found_again() {
    let mut redis = Redis::start();
    let node = Node::on(&redis).await;
    let pool = node.pool().await;
    node.admit(&pool, "ann").await;
    redis.kill();
    for _ in 0..3 {
        assert!(node.claim(&pool, "ann").await.is_err(), "nobody is there");
    }
    redis.start_again(Memory::Lost);
    node.serve(2).await;
    let pool = node.pool().await;
    node.admit(&pool, "bob").await;
}

#[tokio::test]
async fn scripts_that_a_server_has_forgotten_are_loaded_again() {
    let redis = Redis::start();
    let node = Node::on(&redis).await;
    let pool = node.pool().await;
    let ann = node.admit(&pool, "ann").await;
    redis.ask::<()>(redis::cmd("SCRIPT").arg("FLUSH").take());
    node.renew(ann).await.expect("the script is loaded");
    redis.ask::<()>(redis::cmd("SCRIPT").arg("FLUSH").take());
    assert_eq!(node.admit(&pool, "ann").await, ann);
}

#[tokio::test]
async fn a_server_that_forgets_keys_when_its_memory_is_full_is_not_fit() {
    let redis = Redis::start();
    let node = Node::on(&redis).await;
    let patience = Duration::from_secs(30);
    assert_eq!(node.servers.unfit(patience).await, Vec::<String>::new());
    for policy in ["volatile-ttl", "allkeys-lru", "volatile-lru", "allkeys-random"] {
        redis.ask::<()>(redis::cmd("CONFIG").arg("SET").arg("maxmemory-policy").arg(policy).take());
        let unfit = node.servers.unfit(patience).await;
        assert!(unfit.len() == 1 && unfit[0].contains(policy), "{unfit:?}");
    }
}
