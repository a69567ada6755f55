//! Capacities never depend on Redis.

use seatkeeper_testbed::redis::{Memory, Redis};
use serde_json::{Value, json};
use uuid::Uuid;

use super::scene_again::{judged, played};
use super::support::{Nodes, answered};
use crate::harness::{Answer, Client};

const CAPACITIES: &str = "/api/v1/capacities/sessions";

/// Takes a capacity for a user.
async fn take(client: &Client, tenant: Uuid, user: Uuid, kind: u8) -> Answer {
    let ask =
        json!({ "tenantObjectId": tenant, "userObjectId": user, "capacityId": tenant, "sessionKind": kind });
    client.put(CAPACITIES, ask).await
}

/// Checks the status of an answer. Returns `Err` with a 503, which only a node that stood still may answer.
fn served(answer: Answer, status: u16) -> Result<Value, String> {
    if answer.status == 503 { Err(format!("{answer:?}")) } else { Ok(answer.expect(status)) }
}

fn path_of(session: &Value) -> String {
    format!("{CAPACITIES}/{}", session.as_str().expect("a session id"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn capacities_are_taken_found_and_released_whatever_becomes_of_redis() {
    played(capacities_do_not_need_redis).await;
}

/// Returns `false` if a node stood still.
async fn capacities_do_not_need_redis() -> bool {
    let mut redis = Redis::start();
    let nodes = Nodes::over(&[redis.url(), redis.url()]);
    let (tenant, ann) = (Uuid::new_v4(), Uuid::new_v4());
    let clients: Vec<_> = nodes
        .harnesses
        .iter()
        .map(|harness| Client::new(harness.url(), harness.token_of(&tenant.to_string(), "desk", "service")))
        .collect();
    let first = answered(async || take(&clients[0], tenant, ann, 1).await).await;
    assert!([200, 201].contains(&first.status), "{first:?}");
    let admin = nodes.harnesses[1].token_of(&tenant.to_string(), "ops", "admin");
    let admin = Client::new(nodes.harnesses[1].url(), admin);
    let verdict = outlives_redis(&mut redis, &clients, &admin, tenant, (ann, &first.body["sessionId"])).await;
    judged(nodes, verdict)
}

/// Takes, finds and releases capacities while Redis is away, and after Redis has lost its memory. `first` is
/// the capacity of Ann.
async fn outlives_redis(
    redis: &mut Redis,
    clients: &[Client],
    admin: &Client,
    tenant: Uuid,
    (ann, first): (Uuid, &Value),
) -> Result<(), String> {
    let (ann_at, bob) = (path_of(first), Uuid::new_v4());
    // Capacities are served from the first moment of the outage, before any node notices it.
    redis.kill();
    let mut bobs = Vec::new();
    for _ in 0..20 {
        for client in clients {
            assert_eq!(served(client.get(&ann_at).await, 200)?["isActive"], true);
            assert_eq!(served(take(client, tenant, ann, 1).await, 200)?["sessionId"], *first);
        }
        let taken = served(take(&clients[1], tenant, bob, 2).await, 201)?;
        bobs.push(taken["sessionId"].clone());
        served(clients[0].delete(&path_of(&taken["sessionId"])).await, 204)?;
        served(clients[1].delete(&path_of(&taken["sessionId"])).await, 404)?;
        tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    }

    // The loss of Redis's memory loses no capacity.
    redis.start_again(Memory::Lost);
    let upgraded = served(take(&clients[1], tenant, ann, 3).await, 201)?;
    assert_eq!(upgraded["status"], "upgraded");
    assert_eq!(served(clients[0].get(&ann_at).await, 200)?["endReason"], "upgraded");
    let bob_at = served(clients[0].get(&path_of(&bobs[0])).await, 200)?;
    assert_eq!((&bob_at["isActive"], &bob_at["endReason"]), (&json!(false), &json!("released")));
    let revoke = format!("/api/v1/admin/sessions/{}", upgraded["sessionId"].as_str().expect("a session id"));
    served(admin.delete(&revoke).await, 204)?;
    let upgraded = served(clients[0].get(&path_of(&upgraded["sessionId"])).await, 200)?;
    assert_eq!(upgraded["endReason"], "revoked");
    Ok(())
}
