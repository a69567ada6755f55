//! Nodes with different views of Redis: two primaries, no primary, or a temporary loss.

use std::time::Instant;

use rustix::process::Signal;
use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::Redis;

use super::support::{
    Nodes, answered, denied, released, renewed, seat, seated, signal, stays_out, taken_out, usurper,
};

#[tokio::test]
async fn an_old_primary_that_lives_on_gives_no_seat_that_the_new_one_gives() {
    let old = Redis::start();
    let mut nodes = Nodes::over(&[old.url(), old.url()]);
    let license = nodes.harnesses[0].license(2).await;
    let ann = seat(&nodes.clients()[0], &license, "ann").await;
    let replica = usurper(&old);

    // Three new nodes find the new primary. The first alone is no majority.
    nodes.add(&replica.url());
    nodes.add(&replica.url());
    nodes.add(&replica.url());
    let clients = nodes.clients();
    renewed(&clients[2], &ann).await;
    let bob = seated(&clients[3], &license["license_key"], "bob").await;
    for client in &clients {
        for machine in ["carl", "dora"] {
            let answer = client.acquire(&license["license_key"], machine).await;
            assert!([403, 503].contains(&answer.status), "{:#}", answer.body);
        }
    }
    // On a slow machine licenses may fall back to the ledger for a while, and every node serves licenses
    // then.
    nodes.redis_serves_again().await;
    // A node at the old primary answers 503, and no load balancer sends requests to it.
    let began = Instant::now();
    for stray in &clients[..2] {
        taken_out(stray, began).await;
    }
    renewed(&clients[4], &bob["session_id"]).await;
    renewed(&clients[4], &ann).await;
    answered(async || clients[2].get("/readyz").await).await.expect(200);
    for stray in &clients[..2] {
        stays_out(stray, &ann).await;
    }
    drop(nodes.close());
}

#[tokio::test]
async fn a_node_that_was_frozen_through_a_rebuild_answers_by_the_new_epoch() {
    let mut redis = Redis::start();
    let nodes = Nodes::over(&[redis.url(), redis.url()]);
    let (license, clients) = (nodes.harnesses[0].license(1).await, nodes.clients());
    let ann = seat(&clients[0], &license, "ann").await;
    signal(&nodes.harnesses[0], Signal::STOP);

    redis.kill();
    redis.start_again(seatkeeper_testbed::redis::Memory::Lost);
    renewed(&clients[1], &ann).await;
    released(&clients[1], &ann).await;
    let bob = seat(&clients[1], &license, "bob").await;

    signal(&nodes.harnesses[0], Signal::CONT);
    answered(async || clients[0].heartbeat(&ann).await).await.expect(410);
    renewed(&clients[0], &bob).await;
    denied(&clients[0], &license["license_key"], "carl").await;
    drop(nodes.close());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_alone_is_cut_off_takes_itself_out_and_comes_back() {
    let redis = Redis::start();
    let proxy = Proxy::start(([127, 0, 0, 1], redis.port()).into(), 1).await;
    let cut_off = format!("redis://{}", proxy.address());
    let nodes = Nodes::over(&[cut_off, redis.url(), redis.url()]);
    let (license, clients) = (nodes.harnesses[0].license(2).await, nodes.clients());
    let ann = seat(&clients[0], &license, "ann").await;

    proxy.set(Network::Cut);
    taken_out(&clients[0], Instant::now()).await;
    stays_out(&clients[0], &ann).await;
    clients[1].get("/readyz").await.expect(200);
    renewed(&clients[1], &ann).await;
    let bob = seat(&clients[2], &license, "bob").await;

    proxy.set(Network::Well);
    answered(async || clients[0].get("/readyz").await).await.expect(200);
    renewed(&clients[0], &bob).await;
    denied(&clients[0], &license["license_key"], "carl").await;
    drop(nodes.close());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_no_node_reaches_redis_nobody_is_admitted_and_nobody_loses_a_seat() {
    let redis = Redis::start();
    let proxy = Proxy::start(([127, 0, 0, 1], redis.port()).into(), 1).await;
    let through = format!("redis://{}", proxy.address());
    let deny = &[("REGISTRY_WHEN_DOWN", "deny")];
    let nodes = Nodes::over_with(&[through.clone(), through.clone(), through], deny);
    let (license, clients) = (nodes.harnesses[0].license(2).await, nodes.clients());
    let ann = seat(&clients[0], &license, "ann").await;

    proxy.set(Network::Cut);
    for client in &clients {
        renewed(client, &ann).await;
        answered(async || client.get("/readyz").await).await.expect(200);
        client.acquire(&license["license_key"], "bob").await.expect(503);
    }

    proxy.set(Network::Well);
    let bob = seated(&clients[1], &license["license_key"], "bob").await;
    renewed(&clients[2], &bob["session_id"]).await;
    renewed(&clients[0], &ann).await;
    denied(&clients[0], &license["license_key"], "carl").await;
    drop(nodes.close());
}
