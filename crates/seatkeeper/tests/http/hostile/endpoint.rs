//! The operations with a request body, and the fields of each body. A new operation is a constructor in
//! `Endpoint::all`.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Siege;
use crate::harness::Answer;
use crate::http::exchange::exchange;
use crate::http::tenant_client::{
    ACQUIRE, CAPACITIES, DEVICES, LICENSE_TOKEN, LICENSES, PLANS, SUBSCRIPTIONS, license_path, session_path,
    subscription_path, text,
};

pub(super) struct Endpoint<'a> {
    siege: &'a Siege,
    pub(super) name: &'static str,
    method: Method,
    path: String,
    token: String,
    /// A valid body.
    pub(super) valid: Value,
    /// Required fields.
    pub(super) required: &'static [&'static str],
    /// Optional fields.
    pub(super) optional: &'static [&'static str],
    /// A text field; empty if the operation has none.
    pub(super) text_field: &'static str,
    /// A number field, if any.
    pub(super) number_field: Option<&'static str>,
}

impl<'a> Endpoint<'a> {
    pub(super) fn all(siege: &'a Siege) -> [Self; 13] {
        [
            Self::acquire(siege),
            Self::license_token(siege),
            Self::create_license(siege),
            Self::update_license(siege),
            Self::create_plan(siege),
            Self::update_plan(siege),
            Self::create_subscription(siege),
            Self::update_subscription(siege),
            Self::put(siege),
            Self::admit(siege),
            Self::heartbeat(siege),
            Self::license_heartbeat(siege),
            Self::release_by_code(siege),
        ]
    }

    pub(super) fn acquire(siege: &'a Siege) -> Self {
        Self {
            siege,
            name: "acquire",
            method: Method::POST,
            path: ACQUIRE.into(),
            token: siege.api.token("bob", ""),
            valid: json!({ "license_key": text(&siege.license["license_key"]), "machine_id": "laptop-9" }),
            required: &["license_key", "machine_id"],
            optional: &["instance_id", "user_agent", "client", "metadata"],
            text_field: "machine_id",
            number_field: None,
        }
    }

    pub(super) fn license_token(siege: &'a Siege) -> Self {
        Self {
            siege,
            name: "license token",
            method: Method::POST,
            path: LICENSE_TOKEN.into(),
            token: String::new(),
            valid: json!({
                "tenant": siege.api.tenant, "license_key": text(&siege.license["license_key"]), "machine_id": "laptop-9",
            }),
            required: &["license_key", "machine_id"],
            optional: &["tenant"],
            text_field: "machine_id",
            number_field: None,
        }
    }

    fn create_license(siege: &'a Siege) -> Self {
        Self {
            siege,
            name: "create license",
            method: Method::POST,
            path: LICENSES.into(),
            token: siege.api.token("ops", "admin"),
            valid: json!({ "max_seats": 9, "contact": "sales" }),
            required: &["max_seats"],
            optional: &[
                "license_key",
                "expires_at",
                "count_per",
                "clients",
                "ttl_seconds",
                "grace_seconds",
                "reacquire",
                "contact",
            ],
            text_field: "contact",
            number_field: Some("max_seats"),
        }
    }

    fn update_license(siege: &'a Siege) -> Self {
        Self {
            siege,
            name: "update license",
            method: Method::PATCH,
            path: license_path(&siege.license),
            token: siege.api.token("ops", "admin"),
            valid: json!({ "max_seats": 9, "contact": "sales" }),
            required: &[],
            optional: &[
                "max_seats",
                "status",
                "expires_at",
                "count_per",
                "clients",
                "ttl_seconds",
                "grace_seconds",
                "reacquire",
                "contact",
            ],
            text_field: "contact",
            number_field: Some("max_seats"),
        }
    }

    fn create_plan(siege: &'a Siege) -> Self {
        Self {
            siege,
            name: "create plan",
            method: Method::POST,
            path: PLANS.into(),
            token: siege.api.token("ops", "admin"),
            valid: json!({ "name": "family", "device_limit": 6 }),
            required: &["name", "device_limit"],
            optional: &["price_cents", "when_full", "ttl_seconds"],
            text_field: "name",
            number_field: Some("device_limit"),
        }
    }

    fn update_plan(siege: &'a Siege) -> Self {
        Self {
            siege,
            name: "update plan",
            method: Method::PATCH,
            path: format!("{PLANS}/premium"),
            token: siege.api.token("ops", "admin"),
            valid: json!({ "device_limit": 6, "when_full": "deny" }),
            required: &[],
            optional: &["device_limit", "price_cents", "when_full", "ttl_seconds", "status"],
            text_field: "when_full",
            number_field: Some("device_limit"),
        }
    }

    fn create_subscription(siege: &'a Siege) -> Self {
        Self {
            siege,
            name: "create subscription",
            method: Method::POST,
            path: SUBSCRIPTIONS.into(),
            token: siege.api.token("ops", "admin"),
            valid: json!({ "user": "bob", "plan": "basic" }),
            required: &["user", "plan"],
            optional: &["starts_at", "ends_at"],
            text_field: "user",
            number_field: None,
        }
    }

    fn update_subscription(siege: &'a Siege) -> Self {
        Self {
            siege,
            name: "update subscription",
            method: Method::PATCH,
            path: subscription_path(&siege.subscription),
            token: siege.api.token("ops", "admin"),
            valid: json!({ "plan": "premium" }),
            required: &[],
            optional: &["plan", "starts_at", "ends_at"],
            text_field: "plan",
            number_field: None,
        }
    }

    fn put(siege: &'a Siege) -> Self {
        let id = || json!(Uuid::new_v4());
        Self {
            siege,
            name: "put",
            method: Method::PUT,
            path: CAPACITIES.into(),
            token: siege.api.token("bob", "service"),
            valid: json!({
                "userObjectId": id(), "tenantObjectId": siege.api.tenant, "capacityId": id(), "sessionKind": 2,
            }),
            required: &["userObjectId", "tenantObjectId", "capacityId", "sessionKind"],
            optional: &[],
            text_field: "capacityId",
            number_field: Some("sessionKind"),
        }
    }

    pub(super) fn admit(siege: &'a Siege) -> Self {
        Self {
            siege,
            name: "admit",
            method: Method::POST,
            path: DEVICES.into(),
            token: siege.api.token("bob", ""),
            valid: json!({ "device_id": "tv", "device_type": "tv" }),
            required: &["device_id", "device_type"],
            optional: &["device_name", "session_id", "replace_session_id"],
            text_field: "device_name",
            number_field: None,
        }
    }

    fn heartbeat(siege: &'a Siege) -> Self {
        Self {
            siege,
            name: "heartbeat",
            method: Method::POST,
            path: format!("{DEVICES}/heartbeat"),
            token: siege.api.token("bob", ""),
            valid: json!({ "session_id": Uuid::new_v4() }),
            required: &["session_id"],
            optional: &["idle_seconds", "offline_seconds"],
            text_field: "session_id",
            number_field: Some("offline_seconds"),
        }
    }

    fn license_heartbeat(siege: &'a Siege) -> Self {
        Self {
            siege,
            name: "license heartbeat",
            method: Method::PATCH,
            path: format!("{}/heartbeat", session_path(&siege.session)),
            token: siege.api.token("bob", ""),
            valid: json!({ "idle_seconds": 3, "offline_seconds": 60 }),
            required: &[],
            optional: &["idle_seconds", "offline_seconds"],
            text_field: "",
            number_field: Some("offline_seconds"),
        }
    }

    /// Returns `true` if the operation takes an empty body and `null`.
    pub(super) fn is_body_optional(&self) -> bool {
        self.name == "license heartbeat"
    }

    fn release_by_code(siege: &'a Siege) -> Self {
        Self {
            siege,
            name: "release by code",
            method: Method::POST,
            path: "/api/v1/licenses/sessions/release".into(),
            token: String::new(),
            valid: json!({ "session_id": Uuid::new_v4(), "release_code": "x" }),
            required: &["session_id", "release_code"],
            optional: &[],
            text_field: "release_code",
            number_field: None,
        }
    }

    pub(super) async fn send(&self, body: impl Into<reqwest::Body>) -> Answer {
        let request = self.siege.api.request(self.method.clone(), &self.path).bearer_auth(&self.token);
        exchange(request.header("Content-Type", "application/json").body(body)).await
    }

    /// Returns the valid body with one field replaced.
    pub(super) fn with(&self, field: &str, value: Value) -> String {
        let mut body = self.valid.clone();
        body[field] = value;
        body.to_string()
    }

    /// Returns the request line and headers, to be sent as raw bytes.
    pub(super) fn head(&self, framing: &str) -> String {
        let Self { method, path, token, .. } = self;
        format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n{framing}\r\n\r\n"
        )
    }
}
