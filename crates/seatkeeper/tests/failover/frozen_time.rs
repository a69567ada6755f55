//! Registry time in PostgreSQL stands still after a jump of the clock, and while no node serves.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::clock_steps::{RUNS_ON_WITHIN, STEP, Servers};
use super::support::{answered, renewed, seat, signal};
use crate::support::scene::License;
use crate::until::within;

/// The TTL of a session over a clock jump.
const SHORT_TTL: Duration = Duration::from_secs(4);

/// The TTL of a session during a freeze of all nodes for [`FREEZE`].
const FROZEN_TTL: Duration = Duration::from_secs(10);

/// Longer than a clock takes to settle, and than the clock's lease.
const FREEZE: Duration = Duration::from_secs(12);

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
