//! The requests of the tests of groups.

use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Answer, Client};
use crate::http::exchange::assert_problem;
use crate::http::tenant_client::{DEVICES, PLANS, TenantClient};

pub(crate) const GROUPS: &str = "/api/v1/devices/groups";

/// More than a tick of registry time. Among members of the same millisecond, the ids decide who is the host.
const A_TICK: Duration = Duration::from_millis(3);

/// Creates the plan `of-USER` with the terms, and subscribes the user.
pub(crate) async fn subscribe(api: &TenantClient, user: &str, terms: Value) {
    let plan = format!("of-{user}");
    api.admin().post(PLANS, with(terms, "name", &json!(plan))).await.expect(201);
    api.subscription(user, &plan).await;
}

pub(crate) fn device(id: &str) -> Value {
    json!({ "device_id": id, "device_type": "tv", "device_name": id })
}

pub(crate) fn with(mut body: Value, field: &str, value: &Value) -> Value {
    body[field] = value.clone();
    body
}

pub(crate) async fn admit(client: &Client, id: &str) -> Value {
    client.post(DEVICES, device(id)).await.expect(201)
}

/// Takes a screen for the device and makes it the host of a group.
pub(crate) async fn create(client: &Client, id: &str) -> Value {
    create_with(client, device(id)).await
}

/// Takes a screen for the device and makes it the host of a group, with further fields of the creation.
pub(crate) async fn create_with(client: &Client, ask: Value) -> Value {
    let id = ask["device_id"].as_str().expect("a name");
    let session = admit(client, id).await["session_id"].clone();
    let created = client.post(GROUPS, with(ask, "session_id", &session)).await.expect(201);
    tokio::time::sleep(A_TICK).await;
    created
}

pub(crate) async fn join(client: &Client, code: &Value, id: &str) -> Answer {
    join_with(client, code, device(id)).await
}

/// Joins with further fields.
pub(crate) async fn join_with(client: &Client, code: &Value, ask: Value) -> Answer {
    let joined = client.post(&format!("{GROUPS}/join"), with(ask, "join_code", code)).await;
    tokio::time::sleep(A_TICK).await;
    joined
}

pub(crate) async fn beat(client: &Client, session: &Value) -> Answer {
    client.post(&format!("{GROUPS}/heartbeat"), json!({ "session_id": session })).await
}

/// Sends a heartbeat with the content that the member watches.
pub(crate) async fn watch(client: &Client, session: &Value, content: &str) -> Answer {
    let ask = json!({ "session_id": session, "content_id": content });
    client.post(&format!("{GROUPS}/heartbeat"), ask).await
}

pub(crate) async fn leave(client: &Client, group: &Value, session: &Value) -> Answer {
    client.post(&format!("{GROUPS}/leave"), json!({ "group_id": group, "session_id": session })).await
}

#[track_caller]
pub(crate) fn assert_refused(answer: &Answer, name: &str) {
    assert_problem(answer, 403, name);
    assert_eq!(answer.body["type"], format!("/problems/{name}"));
}
