//! Failover by Sentinels, followed by the registry.
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use seatkeeper_redis::{Login, Password, ServerSettings, Servers};
use seatkeeper_registry::{Error, Identity, Rebuild as _};
use seatkeeper_testbed::redis::{Redis, Sentinel};

use crate::node::Node;

/// Deadline for a failover, on a busy machine.
const FOLLOWED_MAX: Duration = Duration::from_secs(30);

#[tokio::test]
async fn when_the_primary_is_killed_the_promoted_one_is_found_and_serves_only_what_was_filled_there() {
    follows(Redis::kill, |_| {}).await;
}

#[tokio::test]
async fn a_primary_that_hangs_is_left_and_not_gone_back_to() {
    follows(|primary| primary.pause(), |primary| primary.resume()).await;
}

#[tokio::test]
async fn sentinels_with_a_user_and_a_password_of_their_own_are_told_them_and_the_servers_others() {
    let primary = Redis::start();
    let _replica = Redis::replica_of(&primary);
    let sentinel = Sentinel::watch(&primary, "seats");
    sentinel.answers_only("looker", "which one");
    let rules = ["on", ">open", "~sk:*", "&sk:*", "+@all"];
    primary.ask::<()>(redis::cmd("ACL").arg("SETUSER").arg("seatkeeper").arg(&rules).take());

    let login = |user: &str, password: &str| Login {
        username: Some(user.to_owned()),
        password: Password::Text(password.to_owned()),
    };
    let by_url: ServerSettings = sentinel.url().parse().expect("a URL");
    let settings = ServerSettings { login: login("seatkeeper", "open"), ..by_url };
    let node =
        Node::over(ServerSettings { sentinel_login: Some(login("looker", "which one")), ..settings.clone() });
    let node = node.await;
    let pool = node.pool().await;
    node.admit(&pool, "ann").await;
    let who: String = node.servers.query("key", redis::cmd("ACL").arg("WHOAMI")).await.expect("an answer");
    assert_eq!(who, "seatkeeper");

    for (what, sentinel_login) in [("none", None), ("a wrong one", Some(login("looker", "open")))] {
        let servers = Servers::new(ServerSettings { sentinel_login, ..settings.clone() });
        let asked = servers.query::<String>("key", &redis::cmd("PING")).await;
        assert!(asked.is_err(), "who shows {what} is told of the primary: {asked:?}");
    }
}

/// Two Sentinels with a server each exchange no messages, as after a failover behind a cut network.
#[tokio::test]
async fn of_two_sentinels_that_disagree_the_one_with_the_later_failover_is_believed() {
    let servers = [Redis::start(), Redis::start()];
    for (case, epochs, newest) in [("the second is newer", [3, 7], 1), ("the first is newer", [7, 3], 0)] {
        let sentinels = [0, 1].map(|at| Sentinel::watch_since(&servers[at], "seats", epochs[at]));
        let url = format!("redis+sentinel://{},{}/seats", sentinels[0].address(), sentinels[1].address());
        // A choice by chance is right in one of two attempts.
        for _ in 0..10 {
            let link = Servers::new(url.parse().expect("a URL"));
            let mut config = redis::cmd("CONFIG");
            config.arg("GET").arg("port");
            let (_, port): (String, u16) = link.query("key", &config).await.expect("an answer");
            assert_eq!(port, servers[newest].port(), "{case}");
        }
    }
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

/// Returns the server that has every bucket, if all buckets are reachable.
async fn only_server(node: &Node) -> Option<Identity> {
    let conditions = node.registry.conditions().await;
    let servers: Option<BTreeSet<_>> =
        conditions.into_iter().map(|condition| condition.server.map(|Identity(text)| text)).collect();
    let servers = servers?;
    assert!(servers.len() == 1, "one server has all: {servers:?}");
    servers.into_iter().next().map(Identity)
}
