//! Licenses for the invariants' tests.

use serde_json::{Value, json};

use crate::harness::{Client, Harness};

/// A license under test.
#[derive(Clone, Debug)]
pub(crate) struct License {
    pub(crate) id: String,
    pub(crate) key: Value,
    pub(crate) seats: u32,
}

impl License {
    /// Creates a license. Without `ttl_seconds`, the server's default TTL applies.
    pub(crate) async fn make(admin: &Client, seats: u32, ttl_seconds: Option<u64>) -> Self {
        let ask = json!({ "max_seats": seats, "ttl_seconds": ttl_seconds });
        let made = admin.post("/api/v1/admin/licenses", ask).await.expect(201);
        Self::from_answer(&made, seats)
    }

    /// Reads the answer to the creation of a license.
    pub(crate) fn from_answer(made: &Value, seats: u32) -> Self {
        let id = made["license_id"].as_str().expect("an id").to_owned();
        Self { id, key: made["license_key"].clone(), seats }
    }

    /// Returns the license key as text.
    pub(crate) fn key(&self) -> String {
        self.key.as_str().expect("a key").to_owned()
    }

    /// Returns the number of taken seats, as the registry counts.
    pub(crate) async fn seats_used(&self, admin: &Client) -> u64 {
        let shown = admin.get(&format!("/api/v1/admin/licenses/{}", self.id)).await.expect(200);
        shown["seats_used"].as_u64().expect("a number")
    }

    /// Changes the number of seats.
    pub(crate) async fn resize(&self, admin: &Client, seats: u32) {
        let change = json!({ "max_seats": seats });
        admin.patch(&format!("/api/v1/admin/licenses/{}", self.id), Some(change)).await.expect(200);
    }

    /// Returns the ids of live sessions, at most 500, in no particular order.
    pub(crate) async fn sessions(&self, admin: &Client) -> Vec<String> {
        let path = format!("/api/v1/licenses/{}/sessions?limit=500", self.id);
        let page = admin.get(&path).await.expect(200);
        let items = page["items"].as_array().expect("a list");
        items.iter().map(|item| text(&item["session_id"])).collect()
    }
}

/// Starts a server with a commit timeout of a minute, for a machine that is busy with other tests.
pub(crate) fn patient(settings: &[(&str, &str)]) -> Harness {
    let mut all = vec![("LEDGER_COMMIT_TIMEOUT_MILLISECONDS", "60000")];
    all.extend(settings);
    Harness::open_with(&all)
}

/// Returns the text of a JSON string.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}
