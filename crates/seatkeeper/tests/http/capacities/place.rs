//! Helpers for the tests of capacities.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Answer, Client};
use crate::http::tenant_client::{CAPACITIES, TenantClient, capacity, text};

/// A user and a capacity of a tenant: one pool.
pub(crate) struct CapacityFixture {
    pub(crate) tenant: String,
    pub(crate) user: Uuid,
    pub(crate) capacity: Uuid,
}

impl CapacityFixture {
    /// Returns a new user and capacity of the client's tenant.
    pub(crate) fn new(api: &TenantClient) -> Self {
        Self { tenant: api.tenant.clone(), user: Uuid::new_v4(), capacity: Uuid::new_v4() }
    }

    /// Returns the request body for a tier.
    pub(crate) fn ask(&self, kind: u8) -> Value {
        capacity(&self.tenant, self.user, self.capacity, kind)
    }

    pub(crate) async fn put(&self, client: &Client, kind: u8) -> Answer {
        client.put(CAPACITIES, self.ask(kind)).await
    }

    /// Creates or upgrades a session, and returns its id.
    pub(crate) async fn take(&self, client: &Client, kind: u8) -> Value {
        self.put(client, kind).await.expect(201)["sessionId"].clone()
    }

    /// Returns the search path with an explicit tenant, valid for tokens of any tenant.
    pub(crate) fn search(&self) -> String {
        let Self { tenant, user, capacity } = self;
        format!("{CAPACITIES}?userObjectId={user}&capacityId={capacity}&tenantObjectId={tenant}")
    }

    /// Returns the sessions that the search shows to a client.
    pub(crate) async fn found(&self, client: &Client) -> Vec<Value> {
        let page = client.get(&self.search()).await.expect(200);
        assert_eq!(page.get("next_cursor"), None);
        page["items"].as_array().expect("a list").clone()
    }

    /// Returns the pool's name in the admin API.
    pub(crate) fn pool(&self) -> String {
        format!("{}/{}", self.user, self.capacity)
    }

    /// Returns the API's representation of a live session, without times.
    pub(crate) fn shown(&self, session: &Value, kind: u8) -> Value {
        json!({
            "sessionId": session,
            "userObjectId": self.user,
            "tenantObjectId": self.tenant,
            "capacityId": self.capacity,
            "sessionKind": kind,
            "isActive": true,
        })
    }
}

/// Returns the path of a session.
pub(crate) fn path_of(session: &Value) -> String {
    format!("{CAPACITIES}/{}", text(session))
}

/// Splits an answer into the part without times, and its start and end.
pub(crate) fn timeless(mut answer: Value) -> (Value, [chrono::DateTime<chrono::Utc>; 2]) {
    let mut time = |name: &str| {
        let value = answer.as_object_mut().expect("an object").remove(name).expect("a time");
        let written = text(&value);
        assert!(written.ends_with('Z'), "{written}");
        written.parse().expect("a time")
    };
    let times = [time("sessionStartUtc"), time("sessionEndUtc")];
    (answer, times)
}
