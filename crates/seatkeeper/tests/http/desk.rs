//! One server for all tests that run at the same time; each test has a tenant of its own there.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use seatkeeper_server::auth::{TokenRequest, mint};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::house::{Client, Doors, House};

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

/// Longer than any test takes.
const TOKEN_TTL: Duration = Duration::from_secs(3_600);

// Weak, for a static is never dropped: the last test to leave closes the house, which checks it.
static HOUSE: Mutex<Weak<House>> = Mutex::new(Weak::new());

static TENANTS: AtomicU32 = AtomicU32::new(1);

/// Where a tenant's users and admins speak to a server.
pub(crate) struct Desk {
    pub(crate) house: Arc<House>,
    pub(crate) tenant: String,
    http: reqwest::Client,
    /// The node that clients speak to; `None`: every node in turn.
    node: Option<Doors>,
}

impl Desk {
    /// A new tenant of the server that tests share.
    pub(crate) fn open() -> Self {
        let mut shared = HOUSE.lock().unwrap_or_else(PoisonError::into_inner);
        let house = shared.upgrade().unwrap_or_else(|| Arc::new(House::open()));
        *shared = Arc::downgrade(&house);
        drop(shared);
        Self::at(house)
    }

    /// A new tenant of a server with settings of its own.
    pub(crate) fn open_with(settings: &[(&str, &str)]) -> Self {
        Self::at(Arc::new(House::open_with(settings)))
    }

    /// Another tenant of the same server.
    pub(crate) fn neighbour(&self) -> Self {
        Self::at(Arc::clone(&self.house))
    }

    /// The same tenant at one node alone. A change of a plan binds the node that made the change at once, and other nodes
    /// within a second.
    pub(crate) fn at_one_node(self) -> Self {
        let node = Some(Doors::new([self.house.url().to_owned()]));
        Self { node, ..self }
    }

    fn at(house: Arc<House>) -> Self {
        // A UUID, as the tenants of capacities must be.
        let number = TENANTS.fetch_add(1, Ordering::Relaxed);
        let tenant = Uuid::from_u128(0x8000_4000_8000_0000_0000_0000_0000 | u128::from(number)).to_string();
        Self { house, tenant, http: reqwest::Client::new(), node: None }
    }

    /// Ends the server as a power cut would, and starts it again.
    pub(crate) fn restart(&mut self) {
        self.restart_after(Duration::ZERO);
    }

    /// Ends the server as a power cut would, and starts it again when it was down for so long.
    pub(crate) fn restart_after(&mut self, pause: Duration) {
        let house = Arc::get_mut(&mut self.house).expect("a server of this test alone");
        house.kill();
        std::thread::sleep(pause);
        house.start();
    }

    /// A token of the tenant.
    pub(crate) fn token(&self, user: &str, scopes: &str) -> String {
        let (tenant, user, scopes) = (self.tenant.clone(), user.to_owned(), scopes.to_owned());
        mint(&self.house.token_settings(), &TokenRequest { tenant, user, scopes, ttl: TOKEN_TTL })
            .expect("a token")
    }

    pub(crate) fn user(&self, name: &str) -> Client {
        self.client(self.token(name, ""))
    }

    /// A program that acts for users of the tenant.
    pub(crate) fn service(&self, name: &str) -> Client {
        self.client(self.token(name, "service"))
    }

    pub(crate) fn admin(&self) -> Client {
        self.client(self.token("ops", "admin"))
    }

    /// A client with any text for a token.
    pub(crate) fn client(&self, token: String) -> Client {
        let doors = self.node.as_ref().unwrap_or(self.house.doors());
        Client::with(self.http.clone(), doors.clone(), token)
    }

    /// A request without a token.
    pub(crate) fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("{}{path}", self.house.url()))
    }

    /// Makes a license and gives it as the API shows it.
    pub(crate) async fn license(&self, ask: Value) -> Value {
        self.admin().post(LICENSES, ask).await.expect(201)
    }

    /// The license as it is now.
    pub(crate) async fn license_now(&self, license: &Value) -> Value {
        self.admin().get(&license_path(license)).await.expect(200)
    }

    /// Changes a license, and gives it as the API shows it then.
    pub(crate) async fn change(&self, license: &Value, change: Value) -> Value {
        self.admin().patch(&license_path(license), Some(change)).await.expect(200)
    }

    /// Makes a subscription and gives it as the API shows it.
    pub(crate) async fn subscription(&self, user: &str, plan: &str) -> Value {
        self.admin().post(SUBSCRIPTIONS, json!({ "user": user, "plan": plan })).await.expect(201)
    }

    /// A seat of the license for the machine; gives the session's id.
    pub(crate) async fn seat(&self, license: &Value, user: &str, machine: &str) -> Value {
        let answer = self.user(user).acquire(&license["license_key"], machine).await;
        answer.expect(201)["session_id"].clone()
    }
}

/// A capacity for a user of the tenant, in a tier.
pub(crate) fn capacity(tenant: &str, user: Uuid, capacity: Uuid, kind: u8) -> Value {
    json!({
        "userObjectId": user, "tenantObjectId": tenant, "capacityId": capacity, "sessionKind": kind,
    })
}

/// Where admins find a license.
pub(crate) fn license_path(license: &Value) -> String {
    format!("{LICENSES}/{}", text(&license["license_id"]))
}

/// Where admins find a subscription.
pub(crate) fn subscription_path(subscription: &Value) -> String {
    format!("{SUBSCRIPTIONS}/{}", text(&subscription["subscription_id"]))
}

/// Where clients find a session.
pub(crate) fn session_path(session: &Value) -> String {
    format!("/api/v1/licenses/sessions/{}", text(session))
}

/// Where the live sessions of a license are.
pub(crate) fn sessions_path(license: &Value) -> String {
    format!("/api/v1/licenses/{}/sessions", text(&license["license_id"]))
}

/// A text of an answer.
#[track_caller]
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}"))
}
