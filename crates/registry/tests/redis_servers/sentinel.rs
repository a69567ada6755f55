//! Where Sentinels say who is the primary, the registry follows them.
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use seatkeeper_registry::{Error, Identity, Rebuild as _};
use seatkeeper_testbed::redis::{Redis, Sentinel};

use crate::node::Node;

/// How long a failover may take, on a machine that does much else.
const FOLLOWED_MAX: Duration = Duration::from_secs(30);

#[tokio::test]
async fn when_the_primary_is_killed_the_promoted_one_is_found_and_serves_only_what_was_filled_there() {
    follows(Redis::kill, |_| {}).await;
}

#[tokio::test]
async fn a_primary_that_hangs_is_left_and_not_gone_back_to() {
    follows(|primary| primary.pause(), |primary| primary.resume()).await;
}

async fn follows(lose: impl FnOnce(&mut Redis), bring_back: impl FnOnce(&mut Redis)) {
    let mut primary = Redis::start();
    let replica = Redis::replica_of(&primary);
    let sentinel = Sentinel::watch(&primary, "seats");
    let node = Node::over(sentinel.url().parse().expect("a URL")).await;
    let pool = node.pool().await;
    node.admit(&pool, "ann").await;
    let first = only_server(&node).await.expect("it is reached");

    lose(&mut primary);
    let lost = Instant::now();
    let promoted = loop {
        match only_server(&node).await {
            Some(server) if server != first => break server,
            _ => assert!(lost.elapsed() < FOLLOWED_MAX, "the promoted server is not found"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let refused = node.claim(&pool, "bob").await;
    assert!(matches!(refused, Err(Error::NotServing { .. })), "what it was not filled for: {refused:?}");
    bring_back(&mut primary);
    node.serve(2).await;
    let pool = node.pool().await;
    node.admit(&pool, "bob").await;
    assert_eq!(only_server(&node).await, Some(promoted));
    let keys: u64 = replica.ask(redis::cmd("DBSIZE"));
    assert!(keys > 0, "it is the replica that serves");
}

/// The server that has every bucket, if all are reached.
async fn only_server(node: &Node) -> Option<Identity> {
    let conditions = node.registry.conditions().await;
    let servers: Option<BTreeSet<_>> =
        conditions.into_iter().map(|condition| condition.server.map(|Identity(text)| text)).collect();
    let servers = servers?;
    assert!(servers.len() == 1, "one server has all: {servers:?}");
    servers.into_iter().next().map(Identity)
}
