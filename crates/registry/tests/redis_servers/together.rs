//! Calls that are under way together share a connection, and nothing else.

use std::time::Duration;

use futures_util::future::{join, join_all};
use redis::RedisResult;
use seatkeeper_testbed::redis::Redis;

use crate::node::{Node, REACHED_MAX};

const CALLS: usize = 1_000;

#[tokio::test]
async fn an_error_is_that_of_one_call_alone() {
    let redis = Redis::start();
    let node = Node::on(&redis).await;
    redis.ask::<()>(redis::cmd("RPUSH").arg("list").arg("no number").take());
    let calls = (0..CALLS).map(|number| {
        let key = if number % 10 == 3 { "list" } else { "number" };
        let servers = &node.servers;
        async move {
            let answer: RedisResult<u64> = servers.query(key, redis::cmd("INCR").arg(key)).await;
            (key, answer.is_ok())
        }
    });
    let answers = join_all(calls).await;
    assert!(answers.iter().all(|(key, is_ok)| *is_ok == (*key == "number")), "{answers:?}");
}

#[tokio::test]
async fn whoever_waits_is_told_when_the_connection_is_over() {
    let redis = Redis::start();
    let node = Node::on(&redis).await;
    let pool = node.pool().await;
    let ann = node.admit(&pool, "ann").await;
    let calls = join_all((0..CALLS).map(|_| node.renew(ann)));
    let cuts = async {
        for _ in 0..5 {
            redis.ask::<u32>(redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("normal").take());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let told = tokio::time::timeout(REACHED_MAX, join(calls, cuts)).await;
    assert_eq!(told.expect("nobody waits for ever").0.len(), CALLS);
    node.renew_soon(ann).await;
}
