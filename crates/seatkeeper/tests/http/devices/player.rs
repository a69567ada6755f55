//! Devices under test, and the plans and subscriptions of their users.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use serde_json::{Value, json};

use crate::harness::{Answer, Client};
use crate::http::tenant_client::{DEVICES, PLANS, SUBSCRIPTIONS, TenantClient, subscription_path, text};

/// The default network of devices, a /24.
const HOME: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 1);
/// Another network.
pub(crate) const ROAD: Ipv4Addr = Ipv4Addr::new(127, 0, 9, 1);

/// Longer than a millisecond, the resolution of the registry's clock.
const TICK: Duration = Duration::from_millis(2);

/// A user's device with an id, a user agent and a network.
#[derive(Clone)]
pub(crate) struct Player {
    pub(crate) client: Client,
    id: String,
}

impl Player {
    /// Returns a TV at home.
    pub(crate) fn new(api: &TenantClient, user: &str, device_id: &str) -> Self {
        Self::at(api.client(api.token(user, "")), device_id, HOME, "player/1")
    }

    fn at(client: Client, device_id: &str, address: impl Into<IpAddr>, user_agent: &str) -> Self {
        let http = reqwest::Client::builder().local_address(address.into()).user_agent(user_agent);
        let http = http.build().expect("a client");
        Self { client: Client { http, ..client }, id: device_id.to_owned() }
    }

    /// Returns the device with another address or user agent.
    pub(crate) fn moved(&self, address: impl Into<IpAddr>, user_agent: &str) -> Self {
        Self::at(self.client.clone(), &self.id, address, user_agent)
    }

    /// Restricts the device to a single node.
    pub(crate) fn at_one_node(self) -> Self {
        Self { client: self.client.at_one_node(), ..self }
    }

    /// Claims a screen.
    pub(crate) async fn ask(&self) -> Answer {
        self.ask_with(json!({})).await
    }

    /// Claims a screen, with extra fields in the body.
    pub(crate) async fn ask_with(&self, more: Value) -> Answer {
        let mut ask = json!({ "device_id": self.id, "device_type": "tv", "device_name": self.id });
        ask.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = self.client.post(DEVICES, ask).await;
        // The next step needs a later time: sessions with equal times are ordered by id.
        tokio::time::sleep(TICK).await;
        answer
    }

    /// Claims a screen, and returns the session id.
    pub(crate) async fn watch(&self) -> Value {
        self.ask().await.expect(201)["session_id"].clone()
    }

    pub(crate) async fn beat(&self, session: &Value) -> Answer {
        beat(&self.client, session).await
    }
}

/// Renews a device session.
pub(crate) async fn beat(client: &Client, session: &Value) -> Answer {
    client.post(&format!("{DEVICES}/heartbeat"), json!({ "session_id": session })).await
}

/// Returns the path of a session.
pub(crate) fn path(session: &Value) -> String {
    format!("{DEVICES}/{}", text(session))
}

/// Returns the user's live sessions, ordered by last heartbeat, latest first.
pub(crate) async fn live(client: &Client) -> Vec<Value> {
    let page = client.get(DEVICES).await.expect(200);
    page["items"].as_array().unwrap().iter().map(|item| item["session_id"].clone()).collect()
}

/// Creates a plan of the tenant.
pub(crate) async fn plan(api: &TenantClient, name: &str, devices: u32, when_full: &str) {
    let ask = json!({ "name": name, "device_limit": devices, "when_full": when_full });
    api.admin().post(PLANS, ask).await.expect(201);
}

/// Changes a plan of the tenant.
pub(crate) async fn change_plan(api: &TenantClient, name: &str, change: Value) {
    api.admin().patch(&format!("{PLANS}/{name}"), Some(change)).await.expect(200);
}

/// Subscribes a user to a plan, optionally until `ends_at`. Returns the admin path of the subscription.
pub(crate) async fn subscribe(api: &TenantClient, user: &str, plan: &str, ends_at: Option<&str>) -> String {
    let ask = json!({ "user": user, "plan": plan, "ends_at": ends_at });
    subscription_path(&api.admin().post(SUBSCRIPTIONS, ask).await.expect(201))
}

/// Returns the registry's time, from the start of a new session.
pub(crate) async fn clock(api: &TenantClient) -> Value {
    Player::new(api, "clock", "clock").ask().await.expect(201)["started_at"].clone()
}

/// Returns the time `millis` milliseconds after a time in an answer.
pub(crate) fn after(time: &Value, millis: i64) -> String {
    let time = chrono::DateTime::parse_from_rfc3339(text(time)).unwrap();
    (time + chrono::Duration::milliseconds(millis)).to_rfc3339()
}
