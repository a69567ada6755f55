//! Capacities never depend on Redis.

use seatkeeper_testbed::redis::{Memory, Redis};
use serde_json::{Value, json};
use uuid::Uuid;

use super::support::Nodes;
use crate::harness::{Answer, Client};

const CAPACITIES: &str = "/api/v1/capacities/sessions";

/// Takes a capacity for a user.
async fn take(client: &Client, tenant: Uuid, user: Uuid, kind: u8) -> Answer {
    let ask =
        json!({ "tenantObjectId": tenant, "userObjectId": user, "capacityId": tenant, "sessionKind": kind });
    client.put(CAPACITIES, ask).await
}

fn path_of(session: &Value) -> String {
    format!("{CAPACITIES}/{}", session.as_str().expect("a session id"))
}

#[tokio::test]
async fn capacities_are_taken_found_and_released_whatever_becomes_of_redis() {
    let mut redis = Redis::start();
    let nodes = Nodes::over(&[redis.url(), redis.url()]);
    let (tenant, ann, bob) = (Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4());
    let clients: Vec<_> = nodes
        .harnesses
        .iter()
        .map(|harness| Client::new(harness.url(), harness.token_of(&tenant.to_string(), "desk", "service")))
        .collect();
    let first = take(&clients[0], tenant, ann, 1).await.expect(201);
    let ann_at = path_of(&first["sessionId"]);

    // Capacities are served from the first moment of the outage, before any node notices it.
    redis.kill();
    let mut bobs = Vec::new();
    for _ in 0..20 {
        for client in &clients {
            assert_eq!(client.get(&ann_at).await.expect(200)["isActive"], true);
            assert_eq!(take(client, tenant, ann, 1).await.expect(200)["sessionId"], first["sessionId"]);
        }
        let taken = take(&clients[1], tenant, bob, 2).await.expect(201);
        bobs.push(taken["sessionId"].clone());
        clients[0].delete(&path_of(&taken["sessionId"])).await.expect(204);
        clients[1].delete(&path_of(&taken["sessionId"])).await.expect(404);
        tokio::time::sleep(std::time::Duration::from_millis(400)).await;
    }

    // The loss of Redis's memory loses no capacity.
    redis.start_again(Memory::Lost);
    let upgraded = take(&clients[1], tenant, ann, 3).await.expect(201);
    assert_eq!(upgraded["status"], "upgraded");
    assert_eq!(clients[0].get(&ann_at).await.expect(200)["endReason"], "upgraded");
    let bob_at = clients[0].get(&path_of(&bobs[0])).await.expect(200);
    assert_eq!((&bob_at["isActive"], &bob_at["endReason"]), (&json!(false), &json!("released")));
    let admin = nodes.harnesses[1].token_of(&tenant.to_string(), "ops", "admin");
    let admin = Client::new(nodes.harnesses[1].url(), admin);
    let revoke = format!("/api/v1/admin/sessions/{}", upgraded["sessionId"].as_str().expect("a session id"));
    admin.delete(&revoke).await.expect(204);
    assert_eq!(clients[0].get(&path_of(&upgraded["sessionId"])).await.expect(200)["endReason"], "revoked");
    nodes.close();
}
