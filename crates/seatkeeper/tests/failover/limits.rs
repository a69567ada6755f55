//! Rate limits of several nodes, while Redis is reachable and while Redis is unreachable.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use seatkeeper_testbed::redis::{Memory, Redis};
use serde_json::Value;

use super::scene_again::played;
use super::support::{Nodes, SERVED_WAIT_MAX, answered};
use crate::harness::{Client, Harness, TENANT};
use crate::until::within;

/// A role without a rate limit: its answers show when seats are served.
const SERVICE: &str = "service";

/// The time after which a user gets an acquire back, with two acquires a minute.
const GIVEN_BACK_AFTER: Duration = Duration::from_secs(30);

#[tokio::test]
async fn each_node_counts_for_itself_while_redis_is_gone() {
    played(each_node_counts_for_itself).await;
}

/// Returns `false` if the nodes served too late for a verdict: a user had got an acquire back meanwhile.
async fn each_node_counts_for_itself() -> bool {
    let mut redis = Redis::start();
    let limits = &[("LIMITS_LICENSES_ACQUIRES_PER_MINUTE", "2")];
    let nodes = Nodes::over_with(&[redis.url(), redis.url()], limits);
    let license = nodes.harnesses[0].license(10).await;
    let key = &license["license_key"];
    let asked = async |client: &Client| client.acquire(key, "laptop").await.status;
    let service = |harness: &Harness| harness.client_with(harness.token_of(TENANT, "ops", SERVICE));
    let services: Vec<_> = nodes.harnesses.iter().map(service).collect();
    let anns: Vec<_> = nodes.harnesses.iter().map(|harness| harness.client("ann")).collect();
    answered(async || services[0].acquire(key, "laptop").await).await;

    let began = Instant::now();
    let mut statuses = Vec::new();
    for ann in [&anns[0], &anns[1], &anns[0], &anns[1]] {
        statuses.push(asked(ann).await);
    }
    redis.kill();
    for (service, ann) in services.iter().zip(&anns) {
        answered(async || service.acquire(key, "laptop").await).await.expect(200);
        statuses.push(asked(ann).await);
    }
    let is_in_time = began.elapsed() < GIVEN_BACK_AFTER && !statuses.contains(&503);
    println!("ann got {statuses:?}, the last answer after {:?}", began.elapsed());
    if is_in_time {
        assert_eq!(statuses[..4], [200, 200, 429, 429], "the nodes count as one");
        assert_eq!(statuses[4..], [429, 429], "each node knows how ann stood in Redis");
    }
    for harness in &nodes.harnesses {
        two_of_three_pass(harness, key).await;
    }
    redis.start_again(Memory::Lost);
    drop(nodes.close());
    is_in_time
}

/// Checks that a node counts the acquires of a new user. A request that is answered 503 may be counted, so each
/// attempt has a user of its own.
async fn two_of_three_pass(node: &Harness, key: &Value) {
    let mut users = 0;
    within(SERVED_WAIT_MAX, "three requests are answered before an acquire is given back", async || {
        users += 1;
        let bob = node.client(&format!("bob-{users}"));
        let (began, mut statuses) = (Instant::now(), Vec::new());
        for _ in 0..3 {
            statuses.push(bob.acquire(key, "laptop").await.status);
        }
        if began.elapsed() >= GIVEN_BACK_AFTER || statuses.contains(&503) {
            return Err(format!("{statuses:?} after {:?}", began.elapsed()));
        }
        assert_eq!(statuses, [200, 200, 429]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_further_node_passes_at_most_one_more_acquire() {
    const INTERVAL: Duration = Duration::from_secs(15);
    let redis = Redis::start();
    let nodes =
        Nodes::over_with(&[redis.url(), redis.url()], &[("LIMITS_LICENSES_ACQUIRES_PER_MINUTE", "4")]);
    let license = nodes.harnesses[0].license(10).await;
    let anns: Vec<_> = nodes.harnesses.iter().map(|harness| harness.client("ann")).collect();

    let began = Instant::now();
    let mut passed = 0;
    for _ in 0..4 {
        let all = anns.iter().flat_map(|ann| (0..4).map(|_| ann.acquire(&license["license_key"], "laptop")));
        passed += join_all(all).await.iter().filter(|answer| answer.status != 429).count();
    }
    let back = usize::try_from(began.elapsed().as_secs() / INTERVAL.as_secs()).unwrap();
    assert!((4..=5 + back).contains(&passed), "{passed}");
    drop(nodes.close());
}

#[tokio::test]
async fn several_nodes_pass_at_most_one_more_heartbeat_each() {
    const INTERVAL: Duration = Duration::from_secs(15);
    let redis = Redis::start();
    let nodes =
        Nodes::over_with(&[redis.url(), redis.url()], &[("LIMITS_LICENSES_HEARTBEATS_PER_MINUTE", "4")]);
    let license = nodes.harnesses[0].license(10).await;
    let anns: Vec<_> = nodes.harnesses.iter().map(|harness| harness.client("ann")).collect();
    let session = anns[0].acquire(&license["license_key"], "laptop").await.expect(201);

    let began = Instant::now();
    let mut passed = Vec::new();
    for ann in &anns {
        let answers = join_all((0..8).map(|_| ann.heartbeat(&session["session_id"]))).await;
        passed.push(answers.iter().filter(|answer| answer.status == 200).count());
    }
    // Redis and both nodes give back a heartbeat per interval.
    let back = 3 * usize::try_from(began.elapsed().as_secs() / INTERVAL.as_secs()).unwrap();
    assert!((4..=4 + back).contains(&passed[0]), "a single node is exact: {passed:?}");
    assert!((6..=6 + back).contains(&passed.iter().sum()), "{passed:?}");
    drop(nodes.close());
}

#[tokio::test]
async fn nobody_who_would_be_counted_is_let_through_while_redis_is_gone_if_that_is_wanted() {
    let mut redis = Redis::start();
    let limits = &[("LIMITS_LICENSES_ACQUIRES_PER_MINUTE", "100"), ("LIMITS_WHEN_REDIS_DOWN", "deny")];
    let nodes = Nodes::over_with(&[redis.url()], limits);
    let (harness, license) = (&nodes.harnesses[0], nodes.harnesses[0].license(10).await);
    let key = &license["license_key"];
    let (ann, service) =
        (harness.client("ann"), harness.client_with(harness.token_of(TENANT, "ops", SERVICE)));
    ann.acquire(key, "laptop").await.expect(201);

    redis.kill();
    answered(async || service.acquire(key, "laptop").await).await.expect(200);
    let denied = ann.acquire(key, "laptop").await;
    assert!(denied.headers.contains_key("retry-after"), "{denied:?}");
    denied.expect(503);
    redis.start_again(Memory::Lost);
    answered(async || ann.acquire(key, "laptop").await).await.expect(200);
    drop(nodes.close());
}
