//! Heartbeats at a node that has not seen their sessions, while PostgreSQL is down.

use std::time::{Duration, Instant};

use seatkeeper_testbed::postgres::{Postgres, Stop};
use seatkeeper_testbed::redis::Redis;
use serde_json::Value;

use super::support::{Nodes, answered, seat};

const SESSIONS: usize = 30;

/// Longer than a busy machine takes, and shorter than any timeout of the node for the ledger.
const ANSWERED_WITHIN: Duration = Duration::from_secs(2);

/// Returns an unused session id in the bucket of `session`.
fn unknown_beside(session: &Value) -> Value {
    let id = session.as_str().expect("an id");
    let (start, last) = id.split_at(id.len() - 1);
    format!("{start}{}", if last == "0" { "1" } else { "0" }).into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_are_answered_at_once_by_a_node_that_has_not_seen_their_sessions() {
    let (redis, server) = (Redis::start(), Postgres::start());
    let mut nodes = Nodes::on(server.url("postgres"));
    tokio::task::block_in_place(|| nodes.add(&redis.url()));
    let admitting = nodes.harnesses[0].client("crowd");
    let mut sessions = Vec::new();
    for machine in 0..SESSIONS {
        let license = nodes.harnesses[0].license(1).await;
        sessions.push(seat(&admitting, &license, &format!("machine-{machine}")).await);
    }
    tokio::task::block_in_place(|| nodes.add(&redis.url()));
    let other = nodes.harnesses[1].client("crowd");
    answered(async || other.get("/readyz").await).await.expect(200);

    tokio::task::block_in_place(|| server.stop(Stop::Immediate));
    for session in &sessions {
        let asked = Instant::now();
        other.heartbeat(session).await.expect(200);
        let took = asked.elapsed();
        assert!(took < ANSWERED_WITHIN, "a heartbeat is answered after {took:?}");
    }
    // Without the ledger no node can tell whether an unknown session has ended. The node answers 503 at once.
    let asked = Instant::now();
    other.heartbeat(&unknown_beside(&sessions[0])).await.expect(503);
    let took = asked.elapsed();
    assert!(took < ANSWERED_WITHIN, "an unknown session is answered after {took:?}");

    tokio::task::block_in_place(|| server.start_again());
    answered(async || other.heartbeat(&sessions[0]).await).await.expect(200);
    drop(nodes.close());
}
