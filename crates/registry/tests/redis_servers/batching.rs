//! Concurrent calls share a connection, and nothing else.

use std::time::Duration;

use futures_util::future::{join, join_all};
use redis::RedisResult;
use seatkeeper_core::Change;
use seatkeeper_registry::{Answer, Ended, Granted, Heartbeat, Journal as _};
use seatkeeper_testbed::redis::Redis;

use crate::calls::calls_of;
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

#[tokio::test]
async fn what_comes_at_once_takes_few_commands_and_each_is_told_its_own() {
    let redis = Redis::start();
    let node = Node::on(&redis).await;
    let names: Vec<String> = (0..CALLS).map(|number| format!("pool {number}")).collect();
    let pools = join_all(names.iter().map(|name| node.pool_called(name))).await;

    let before = calls_of(&redis, "evalsha");
    let sessions = join_all(pools.iter().zip(&names).map(|(pool, name)| node.admit(pool, name))).await;
    let beats = join_all(sessions.iter().map(|&session| node.renew(session))).await;
    for (name, beat) in names.iter().zip(beats) {
        let Ok(Heartbeat::Renewed(liveness)) = beat else { panic!("{name} is live: {beat:?}") };
        assert_eq!(*liveness.pool.name, **name);
    }
    // Every second session is ended twice: one of two calls finds no session.
    let ends = sessions.iter().step_by(2).flat_map(|&session| [node.end(session), node.end(session)]);
    for told in join_all(ends).await.chunks(2) {
        let times = told.iter().filter(|told| matches!(told, Ok(Ended::Now { .. }))).count();
        let missed = told.iter().filter(|told| matches!(told, Ok(Ended::Missing))).count();
        assert_eq!((times, missed), (1, 1), "{told:?}");
    }
    for (number, &session) in sessions.iter().enumerate() {
        let is_live = matches!(node.renew(session).await, Ok(Heartbeat::Renewed(_)));
        assert_eq!(is_live, number % 2 == 1, "{}", names[number]);
    }
    let commands = calls_of(&redis, "evalsha") - before - CALLS;
    assert!(commands < 3 * CALLS / 10, "{commands} commands for {} calls", 3 * CALLS);
}

/// A step keeps no state for the next step of its batch.
#[tokio::test]
async fn what_comes_at_once_is_decided_one_after_another() {
    let redis = Redis::start();
    let node = Node::on(&redis).await;
    let names: Vec<String> = (0..CALLS / 3).map(|number| format!("pool {number}")).collect();
    let pools = join_all(names.iter().map(|name| node.pool_called(name))).await;

    // The first holder in a pool of one seat gets the seat, and resumes it. A second holder is denied.
    let claims = pools.iter().flat_map(|pool| ["ann", "ann", "ben"].map(|holder| node.claim(pool, holder)));
    let mut told = [0; 4];
    for claimed in join_all(claims).await {
        let what = match claimed.expect("an answer").answer {
            Answer::Granted { how: Granted::Admitted, ended, .. } if ended.is_empty() => 0,
            Answer::Granted { how: Granted::Resumed, ended, .. } if ended.is_empty() => 1,
            Answer::Granted { .. } => 2,
            Answer::Denied(_) => 3,
        };
        told[what] += 1;
    }
    assert_eq!(told.iter().sum::<usize>(), 3 * pools.len());
    assert_eq!((told[0], told[2]), (pools.len(), 0), "{told:?}");

    let read = node.registry.journal_read(CALLS * CALLS).await.expect("it can be read");
    let is_admission = |change: &Change| matches!(change, Change::Admitted { .. });
    let admissions = read.entries.iter().filter(|entry| is_admission(&entry.event.change)).count();
    assert_eq!((admissions, read.entries.len() - admissions), (told[0], told[3]));
}

/// A broken pool does not affect calls on intact pools.
#[tokio::test]
async fn a_script_that_fails_for_one_fails_for_it_alone() {
    let redis = Redis::start();
    let node = Node::on(&redis).await;
    let broken = node.admit(&node.pool_called("broken").await, "ann").await;
    let keys: Vec<String> = redis.ask(redis::cmd("KEYS").arg("sk:*:p*").take());
    for key in keys {
        redis.ask::<()>(redis::cmd("SET").arg(key).arg("no pool").take());
    }
    let sound = node.admit(&node.pool_called("sound").await, "ben").await;
    let renewed =
        join_all((0..CALLS).map(|number| node.renew(if number % 10 == 3 { broken } else { sound }))).await;
    for (number, renewed) in renewed.into_iter().enumerate() {
        assert_eq!(renewed.is_err(), number % 10 == 3, "{number}: {renewed:?}");
    }
}
