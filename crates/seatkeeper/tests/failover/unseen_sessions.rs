//! Heartbeats at a node that has not seen their sessions, while PostgreSQL is down.

use std::time::{Duration, Instant};

use seatkeeper_testbed::postgres::{Postgres, Stop};
use seatkeeper_testbed::redis::Redis;
use serde_json::Value;

use super::scene_again::{judged, played};
use super::support::{Nodes, answered, seated};

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
    played(heartbeats_are_answered_at_once).await;
}

/// Returns `false` if a node stood still. PostgreSQL stays unreachable, so a lapsed lease would stay lapsed.
async fn heartbeats_are_answered_at_once() -> bool {
    let (redis, server) = (Redis::start(), Postgres::start());
    let mut nodes = Nodes::on(server.url("postgres"));
    tokio::task::block_in_place(|| nodes.add(&redis.url()));
    let admitting = nodes.harnesses[0].client("crowd");
    let mut sessions = Vec::new();
    for machine in 0..SESSIONS {
        let license = nodes.harnesses[0].license(1).await;
        let taken = seated(&admitting, &license["license_key"], &format!("machine-{machine}")).await;
        sessions.push(taken["session_id"].clone());
    }
    tokio::task::block_in_place(|| nodes.add(&redis.url()));
    let other = nodes.harnesses[1].client("crowd");
    answered(async || other.get("/readyz").await).await.expect(200);

    tokio::task::block_in_place(|| server.stop(Stop::Immediate));
    let mut late_or_wrong = Vec::new();
    // Without the ledger no node can tell whether an unknown session has ended. The node answers 503 at once.
    let unknown = unknown_beside(&sessions[0]);
    let expected = sessions.iter().map(|session| (session, 200)).chain([(&unknown, 503)]);
    for (session, status) in expected {
        let asked = Instant::now();
        let answer = other.heartbeat(session).await;
        let took = asked.elapsed();
        if answer.status != status || took >= ANSWERED_WITHIN {
            late_or_wrong.push(format!("{answer:?} after {took:?} in place of {status}"));
        }
    }

    tokio::task::block_in_place(|| server.start_again());
    answered(async || other.heartbeat(&sessions[0]).await).await.expect(200);
    judged(nodes, if late_or_wrong.is_empty() { Ok(()) } else { Err(late_or_wrong.join("\n")) })
}
