//! A user and a capacity to play on.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::house::{Answer, Client};
use crate::http::desk::{CAPACITIES, Desk, capacity, text};

/// One user on one capacity of a tenant.
pub(crate) struct Place {
    pub(crate) tenant: String,
    pub(crate) user: Uuid,
    pub(crate) capacity: Uuid,
}

impl Place {
    /// One of the desk's tenant that nobody asked for yet.
    pub(crate) fn of(desk: &Desk) -> Self {
        Self { tenant: desk.tenant.clone(), user: Uuid::new_v4(), capacity: Uuid::new_v4() }
    }

    /// A request for it in this tier.
    pub(crate) fn ask(&self, kind: u8) -> Value {
        capacity(&self.tenant, self.user, self.capacity, kind)
    }

    pub(crate) async fn put(&self, client: &Client, kind: u8) -> Answer {
        client.put(CAPACITIES, self.ask(kind)).await
    }

    /// Creates or upgrades a session; gives its id.
    pub(crate) async fn take(&self, client: &Client, kind: u8) -> Value {
        self.put(client, kind).await.expect(201)["sessionId"].clone()
    }

    /// Where its session is looked for, whatever the tenant of the token.
    pub(crate) fn search(&self) -> String {
        let Self { tenant, user, capacity } = self;
        format!("{CAPACITIES}?userObjectId={user}&capacityId={capacity}&tenantObjectId={tenant}")
    }

    /// The sessions that this client finds.
    pub(crate) async fn found(&self, client: &Client) -> Vec<Value> {
        let page = client.get(&self.search()).await.expect(200);
        assert_eq!(page.get("next_cursor"), None);
        page["items"].as_array().expect("a list").clone()
    }

    /// The pool's name for admins.
    pub(crate) fn pool(&self) -> String {
        format!("{}/{}", self.user, self.capacity)
    }

    /// A session here, live, as it is shown.
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

/// Where a session is.
pub(crate) fn path_of(session: &Value) -> String {
    format!("{CAPACITIES}/{}", text(session))
}

/// The answer without its times, and those: start and end.
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
