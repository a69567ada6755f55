//! Rate limits of several nodes, while Redis is reachable and while Redis is unreachable.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use seatkeeper_testbed::redis::{Memory, Redis};

use super::support::{Nodes, answered};
use crate::harness::{Client, TENANT};

/// A role without a rate limit: its answers show when seats are served.
const SERVICE: &str = "service";

#[tokio::test]
async fn each_node_counts_for_itself_while_redis_is_gone() {
    let mut redis = Redis::start();
    let limits = &[("LIMITS_LICENSES_ACQUIRES_PER_MINUTE", "2")];
    let nodes = Nodes::over_with(&[redis.url(), redis.url()], limits);
    let license = nodes.harnesses[0].license(10).await;
    let key = &license["license_key"];
    let asked = async |client: &Client| client.acquire(key, "laptop").await.status;
    let anns: Vec<_> = nodes.harnesses.iter().map(|harness| harness.client("ann")).collect();
    assert_eq!([asked(&anns[0]).await, asked(&anns[1]).await], [201, 200]);
    assert_eq!([asked(&anns[0]).await, asked(&anns[1]).await], [429, 429], "the nodes count as one");

    redis.kill();
    for (harness, ann) in nodes.harnesses.iter().zip(&anns) {
        let service = harness.client_with(harness.token_of(TENANT, "ops", SERVICE));
        answered(async || service.acquire(key, "laptop").await).await.expect(200);
        let bob = harness.client("bob");
        assert_eq!([asked(&bob).await, asked(&bob).await, asked(&bob).await], [200, 200, 429]);
        assert_eq!(asked(ann).await, 429, "the node knows how ann stood in Redis");
    }
    redis.start_again(Memory::Lost);
    drop(nodes.close());
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
