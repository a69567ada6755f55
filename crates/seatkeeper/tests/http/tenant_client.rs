//! A shared server for concurrent tests, with a new tenant for each test.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use seatkeeper_server::auth::{TokenRequest, mint};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Client, Doors, Harness};

pub(crate) const ACQUIRE: &str = "/api/v1/licenses/acquire";
pub(crate) const LICENSE_TOKEN: &str = "/api/v1/licenses/token";
pub(crate) const LICENSES: &str = "/api/v1/admin/licenses";
pub(crate) const PLANS: &str = "/api/v1/admin/plans";
pub(crate) const SUBSCRIPTIONS: &str = "/api/v1/admin/subscriptions";
pub(crate) const SESSIONS: &str = "/api/v1/admin/sessions";
pub(crate) const DEVICES: &str = "/api/v1/devices/sessions";
pub(crate) const CAPACITIES: &str = "/api/v1/capacities/sessions";
pub(crate) const AUDIT: &str = "/api/v1/admin/audit";
pub(crate) const JOBS: &str = "/api/v1/admin/jobs";
pub(crate) const USAGE: &str = "/api/v1/admin/usage";
pub(crate) const USAGE_BATCHES: &str = "/api/v1/admin/usage/batches";
pub(crate) const RECONCILIATION: &str = "/api/v1/admin/usage/reconciliation";

/// Lifetime of tokens, longer than any test.
const TOKEN_TTL: Duration = Duration::from_secs(3_600);

// A weak reference, because a static is never dropped: the last test drops the harness, which checks the
// server.
static HARNESS: Mutex<Weak<Harness>> = Mutex::new(Weak::new());

static TENANTS: AtomicU32 = AtomicU32::new(1);

/// A tenant of a server, with clients for its users and admins.
pub(crate) struct TenantClient {
    pub(crate) harness: Arc<Harness>,
    pub(crate) tenant: String,
    http: reqwest::Client,
    /// The node that clients talk to. `None` stands for every node, round robin.
    node: Option<Doors>,
}

impl TenantClient {
    /// Returns a new tenant of the shared server.
    pub(crate) fn open() -> Self {
        let mut shared = HARNESS.lock().unwrap_or_else(PoisonError::into_inner);
        let harness = shared.upgrade().unwrap_or_else(|| Arc::new(Harness::open()));
        *shared = Arc::downgrade(&harness);
        drop(shared);
        Self::at(harness)
    }

    /// Returns a new tenant of a new server with extra settings.
    pub(crate) fn open_with(settings: &[(&str, &str)]) -> Self {
        Self::at(Arc::new(Harness::open_with(settings)))
    }

    /// Returns another tenant of the server.
    pub(crate) fn neighbour(&self) -> Self {
        Self::at(Arc::clone(&self.harness))
    }

    /// Restricts the tenant's clients to a single node. A changed plan is in effect at once on the node that
    /// made the change, and within a second on other nodes.
    pub(crate) fn at_one_node(self) -> Self {
        let node = Some(Doors::new([self.harness.url().to_owned()]));
        Self { node, ..self }
    }

    fn at(harness: Arc<Harness>) -> Self {
        // Tenants of capacities must be UUIDs.
        let number = TENANTS.fetch_add(1, Ordering::Relaxed);
        let tenant = Uuid::from_u128(0x8000_4000_8000_0000_0000_0000_0000 | u128::from(number)).to_string();
        Self { harness, tenant, http: reqwest::Client::new(), node: None }
    }

    /// Kills the server as a power cut would, and starts it again.
    pub(crate) fn restart(&mut self) {
        self.restart_after(Duration::ZERO);
    }

    /// Kills the server as a power cut would, and starts it again after `pause`.
    pub(crate) fn restart_after(&mut self, pause: Duration) {
        let harness = Arc::get_mut(&mut self.harness).expect("a server of this test alone");
        harness.kill();
        std::thread::sleep(pause);
        harness.start();
    }

    /// Signs a token of the tenant.
    pub(crate) fn token(&self, user: &str, scopes: &str) -> String {
        let (tenant, user, scopes) = (self.tenant.clone(), user.to_owned(), scopes.to_owned());
        mint(&self.harness.token_settings(), &TokenRequest { tenant, user, scopes, ttl: TOKEN_TTL })
            .expect("a token")
    }

    pub(crate) fn user(&self, name: &str) -> Client {
        self.client(self.token(name, ""))
    }

    /// Returns a client of a service, which acts for users of the tenant.
    pub(crate) fn service(&self, name: &str) -> Client {
        self.client(self.token(name, "service"))
    }

    pub(crate) fn admin(&self) -> Client {
        self.client(self.token("ops", "admin"))
    }

    /// Returns a client with an arbitrary token.
    pub(crate) fn client(&self, token: String) -> Client {
        let doors = self.node.as_ref().unwrap_or(self.harness.doors());
        Client::with(self.http.clone(), doors.clone(), token)
    }

    /// Builds a request without a token.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.harness.url()))
    }

    /// Creates a license. Returns the API's representation.
    pub(crate) async fn license(&self, ask: Value) -> Value {
        self.admin().post(LICENSES, ask).await.expect(201)
    }

    /// Reads a license.
    pub(crate) async fn license_now(&self, license: &Value) -> Value {
        self.admin().get(&license_path(license)).await.expect(200)
    }

    /// Changes a license. Returns the API's representation after the change.
    pub(crate) async fn change(&self, license: &Value, change: Value) -> Value {
        self.admin().patch(&license_path(license), Some(change)).await.expect(200)
    }

    /// Creates a subscription. Returns the API's representation.
    pub(crate) async fn subscription(&self, user: &str, plan: &str) -> Value {
        self.admin().post(SUBSCRIPTIONS, json!({ "user": user, "plan": plan })).await.expect(201)
    }

    /// Takes a new seat of a license for a machine, and returns the session id.
    pub(crate) async fn seat(&self, license: &Value, user: &str, machine: &str) -> Value {
        let answer = self.user(user).acquire(&license["license_key"], machine).await;
        answer.expect(201)["session_id"].clone()
    }
}

/// Returns the request body for a capacity in a tier.
pub(crate) fn capacity(tenant: &str, user: Uuid, capacity: Uuid, kind: u8) -> Value {
    json!({
        "userObjectId": user, "tenantObjectId": tenant, "capacityId": capacity, "sessionKind": kind,
    })
}

/// Returns the admin path of a license.
pub(crate) fn license_path(license: &Value) -> String {
    format!("{LICENSES}/{}", text(&license["license_id"]))
}

/// Returns the admin path of a subscription.
pub(crate) fn subscription_path(subscription: &Value) -> String {
    format!("{SUBSCRIPTIONS}/{}", text(&subscription["subscription_id"]))
}

/// Returns the client path of a session.
pub(crate) fn session_path(session: &Value) -> String {
    format!("/api/v1/licenses/sessions/{}", text(session))
}

/// Returns the path of a license's live sessions.
pub(crate) fn sessions_path(license: &Value) -> String {
    format!("/api/v1/licenses/{}/sessions", text(&license["license_id"]))
}

/// Returns the text of a JSON string.
#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}
