//! Registry time in PostgreSQL stands still after a jump of the clock, and while no node serves. A fallback does not
//! stop registry time.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use seatkeeper_testbed::postgres::database;
use seatkeeper_testbed::redis::Redis;
use sqlx::Connection as _;

use super::clock_steps::{RUNS_ON_WITHIN, STEP, Servers};
use super::support::{Nodes, answered, renewed, seat, signal};
use crate::support::scene::License;
use crate::until::within;

/// The TTL of a session over a clock jump.
const SHORT_TTL: Duration = Duration::from_secs(10);

/// The TTL of a session during a freeze of all nodes for [`FREEZE`].
const FROZEN_TTL: Duration = Duration::from_secs(10);

/// Longer than a clock takes to settle, and than the clock's lease.
const FREEZE: Duration = Duration::from_secs(12);

/// Longer than the clock's lease lasts without a renewal.
const BEYOND_THE_LEASE: Duration = Duration::from_secs(14);

/// A session keeps its seat over a clock jump, and frees the seat one TTL after time runs on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_has_a_full_ttl_after_a_jump_and_then_expires() {
    let servers = Servers::alone(2);
    let (admin, clients) = (servers.nodes.harnesses[0].admin(), servers.nodes.clients());
    let license = License::make(&admin, 1, Some(SHORT_TTL.as_secs())).await;
    let ann = clients[0].acquire(&license.key, "ann").await.expect(201)["session_id"].clone();
    // By this time both nodes have read the clock and keep renewing the lease.
    tokio::time::sleep(Duration::from_secs(1)).await;
    renewed(&clients[1], &ann).await;
    servers.clock.advance(STEP);
    let denied = answered(async || clients[1].acquire(&license.key, "bob").await).await;
    denied.expect(403);
    servers.runs_on().await;
    let ran_on = Instant::now();
    answered(async || clients[1].acquire(&license.key, "bob").await).await.expect(403);
    renewed(&clients[1], &ann).await;
    within(RUNS_ON_WITHIN, "the silent session expires", async || {
        let answer = answered(async || clients[0].acquire(&license.key, "bob").await).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        if answer.status == 201 { Ok(()) } else { Err(answer.status.to_string()) }
    })
    .await;
    assert!(ran_on.elapsed() >= SHORT_TTL - Duration::from_millis(500), "{:?}", ran_on.elapsed());
    drop(servers.nodes.close());
}

/// All nodes are frozen for longer than a session's TTL. The holders could not heartbeat, so no session
/// expires.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_over_postgresql_are_frozen_for_longer_than_a_session_lasts() {
    let servers = Servers::alone(2);
    let (admin, clients) = (servers.nodes.harnesses[0].admin(), servers.nodes.clients());
    let license = License::make(&admin, 2, Some(FROZEN_TTL.as_secs())).await;
    let keys = serde_json::json!({ "license_key": license.key });
    let seats = [seat(&clients[0], &keys, "ann").await, seat(&clients[1], &keys, "bob").await];
    tokio::time::sleep(Duration::from_secs(1)).await;
    for session in &seats {
        renewed(&clients[0], session).await;
    }
    servers.nodes.harnesses.iter().for_each(|node| signal(node, Signal::STOP));
    tokio::time::sleep(FREEZE).await;
    servers.nodes.harnesses.iter().for_each(|node| signal(node, Signal::CONT));
    // While registry time stands still, no session expires anyway.
    servers.runs_on().await;
    answered(async || clients[0].acquire(&license.key, "carl").await).await.expect(403);
    for session in &seats {
        renewed(&clients[1], session).await;
    }
    drop(servers.nodes.close());
}

/// The clients retry while PostgreSQL does not serve yet. Then no heartbeat comes for longer than the clock's lease.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn registry_time_runs_on_after_a_fallback_with_few_sessions() {
    let (database, mut redis) = tokio::task::block_in_place(|| (database(), Redis::start()));
    let mut nodes = Nodes::on(database.url());
    tokio::task::block_in_place(|| (0..3).for_each(|_| nodes.add(&redis.url())));
    let (admin, clients) = (nodes.harnesses[0].admin(), nodes.clients());
    let license = License::make(&admin, 1, Some(60)).await;
    let ann = seat(&clients[0], &serde_json::json!({ "license_key": license.key }), "ann").await;
    redis.kill();
    futures_util::future::join_all(clients.iter().map(|client| renewed(client, &ann))).await;
    let served = Instant::now();
    let mut database = sqlx::PgConnection::connect(&database.url()).await.expect("a connection");
    while served.elapsed() < BEYOND_THE_LEASE {
        let runs: bool = sqlx::query_scalar("SELECT registry.clock() <= trusted_until FROM registry.told")
            .fetch_one(&mut database)
            .await
            .expect("the row of the clock");
        assert!(runs, "registry time stands still {:?} after the fallback", served.elapsed());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    renewed(&clients[1], &ann).await;
    drop(nodes.close());
}
