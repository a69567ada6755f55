//! The operations that take a body, and what a body of theirs may hold.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Siege;
use crate::house::Answer;
use crate::http::desk::{ACQUIRE, CAPACITIES, LICENSES, license_path, text};
use crate::http::exchange::exchange;

pub(super) struct Endpoint<'a> {
    siege: &'a Siege,
    pub(super) name: &'static str,
    method: Method,
    path: String,
    token: String,
    /// A body that would be taken.
    pub(super) valid: Value,
    /// Fields that must be there.
    pub(super) required: &'static [&'static str],
    /// Fields that may be absent.
    pub(super) optional: &'static [&'static str],
    /// A field that takes text.
    pub(super) text_field: &'static str,
    /// A field that takes a number, if there is one.
    pub(super) number_field: Option<&'static str>,
}

impl<'a> Endpoint<'a> {
    pub(super) fn all(siege: &'a Siege) -> [Self; 4] {
        [Self::acquire(siege), Self::create(siege), Self::update(siege), Self::put(siege)]
    }

    pub(super) fn acquire(siege: &'a Siege) -> Self {
        Self {
            siege,
            name: "acquire",
            method: Method::POST,
            path: ACQUIRE.into(),
            token: siege.desk.token("bob", ""),
            valid: json!({ "license_key": text(&siege.license["license_key"]), "machine_id": "laptop-9" }),
            required: &["license_key", "machine_id"],
            optional: &["instance_id", "user_agent", "metadata"],
            text_field: "machine_id",
            number_field: None,
        }
    }

    fn create(siege: &'a Siege) -> Self {
        Self {
            siege,
            name: "create",
            method: Method::POST,
            path: LICENSES.into(),
            token: siege.desk.token("ops", "admin"),
            valid: json!({ "max_seats": 9, "contact": "sales" }),
            required: &["max_seats"],
            optional: &["license_key", "expires_at", "count_per", "ttl_seconds", "contact"],
            text_field: "contact",
            number_field: Some("max_seats"),
        }
    }

    fn update(siege: &'a Siege) -> Self {
        Self {
            siege,
            name: "update",
            method: Method::PATCH,
            path: license_path(&siege.license),
            token: siege.desk.token("ops", "admin"),
            valid: json!({ "max_seats": 9, "contact": "sales" }),
            required: &[],
            optional: &["max_seats", "status", "expires_at", "count_per", "ttl_seconds", "contact"],
            text_field: "contact",
            number_field: Some("max_seats"),
        }
    }

    fn put(siege: &'a Siege) -> Self {
        let id = || json!(Uuid::new_v4());
        Self {
            siege,
            name: "put",
            method: Method::PUT,
            path: CAPACITIES.into(),
            token: siege.desk.token("bob", ""),
            valid: json!({
                "userObjectId": id(), "tenantObjectId": siege.desk.tenant, "capacityId": id(), "sessionKind": 2,
            }),
            required: &["userObjectId", "tenantObjectId", "capacityId", "sessionKind"],
            optional: &[],
            text_field: "capacityId",
            number_field: Some("sessionKind"),
        }
    }

    pub(super) async fn send(&self, body: impl Into<reqwest::Body>) -> Answer {
        let request = self.siege.desk.request(self.method.clone(), &self.path).bearer_auth(&self.token);
        exchange(request.header("Content-Type", "application/json").body(body)).await
    }

    /// The valid body with one field set to this.
    pub(super) fn with(&self, field: &str, value: Value) -> String {
        let mut body = self.valid.clone();
        body[field] = value;
        body.to_string()
    }

    /// The request up to its body, to be sent byte by byte.
    pub(super) fn head(&self, framing: &str) -> String {
        let Self { method, path, token, .. } = self;
        format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{framing}\r\n\r\n"
        )
    }
}
