//! The subject of a request: a license, a capacity, a plan, a subscription and sessions, either real or
//! missing.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use super::table::{Line, Of};
use crate::harness::Answer;
use crate::http::exchange::exchange;
use crate::http::tenant_client::{CAPACITIES, DEVICES, PLANS, SUBSCRIPTIONS, TenantClient, capacity, text};

/// An id after every session id, so that a descending page after it contains every session.
const LATER_SESSION_ID: &str = "ffffffff-0000-8fff-bfff-ffffffffffff";

/// The id of a usage batch that does not exist.
const BATCH_ID: &str = "0193d2f4-0007-8000-8abc-0123456789ab";

/// A job of every server.
const JOB: &str = "session_expiry";

pub(super) struct Subject<'a> {
    api: &'a TenantClient,
    license_id: String,
    license_key: String,
    session_id: String,
    device_session_id: String,
    ended_device_session_id: String,
    ended_license_session_id: String,
    ended_capacity_session_id: String,
    user_object_id: String,
    capacity_id: String,
    capacity_session_id: String,
    plan: String,
    subscription_id: String,
}

impl<'a> Subject<'a> {
    /// Creates a license, a capacity, a plan, a subscription and sessions, for the tenant and user `ann`.
    pub(super) async fn new(api: &'a TenantClient) -> Self {
        let license = api.license(json!({ "max_seats": 1, "clients": "key" })).await;
        let ended_seat = api.seat(&license, "ann", "laptop-0").await;
        api.user("ann").release(&ended_seat).await.expect(204);
        let session = api.seat(&license, "ann", "laptop-1").await;
        let (user, capacity_id) = (Uuid::new_v4(), Uuid::new_v4());
        let lower = api.service("ann").put(CAPACITIES, capacity(&api.tenant, user, capacity_id, 1)).await;
        let taken = api.service("ann").put(CAPACITIES, capacity(&api.tenant, user, capacity_id, 2)).await;
        let ask = json!({ "device_id": "tv", "device_type": "tv" });
        let superseded = api.user("ann").post(DEVICES, ask.clone()).await;
        let device = api.user("ann").post(DEVICES, ask).await;
        // The list waits until the ledger has committed the device sessions.
        api.user("ann").get(DEVICES).await.expect(200);
        let (plan, admin) = (some_plan(), api.admin());
        admin.post(PLANS, json!({ "name": plan, "device_limit": 2 })).await.expect(201);
        let ask = json!({ "user": Uuid::new_v4(), "plan": plan });
        let subscription = admin.post(SUBSCRIPTIONS, ask).await.expect(201);
        let own = |value: &Value| text(value).to_owned();
        Self {
            api,
            license_id: own(&license["license_id"]),
            license_key: own(&license["license_key"]),
            session_id: own(&session),
            device_session_id: own(&device.expect(201)["session_id"]),
            ended_device_session_id: own(&superseded.expect(201)["session_id"]),
            ended_license_session_id: own(&ended_seat),
            ended_capacity_session_id: own(&lower.expect(201)["sessionId"]),
            user_object_id: user.to_string(),
            capacity_id: capacity_id.to_string(),
            capacity_session_id: own(&taken.expect(201)["sessionId"]),
            plan,
            subscription_id: own(&subscription["subscription_id"]),
        }
    }

    /// Returns malformed ids, and a key that breaks the JSON around it.
    pub(super) fn malformed(api: &'a TenantClient) -> Self {
        let x = || "x".to_owned();
        Self {
            api,
            license_id: x(),
            license_key: "\"".into(),
            session_id: x(),
            device_session_id: x(),
            ended_device_session_id: x(),
            ended_license_session_id: x(),
            ended_capacity_session_id: x(),
            user_object_id: x(),
            capacity_id: x(),
            capacity_session_id: x(),
            plan: "\"".into(),
            subscription_id: x(),
        }
    }

    /// Returns two subjects that do not exist: with random ids, and with ids that differ from the real ids in
    /// the last bit.
    pub(super) fn missing(&self) -> [Self; 2] {
        let random = Self {
            api: self.api,
            license_id: Uuid::new_v4().to_string(),
            license_key: Uuid::new_v4().to_string(),
            session_id: Uuid::new_v4().to_string(),
            device_session_id: Uuid::new_v4().to_string(),
            ended_device_session_id: Uuid::new_v4().to_string(),
            ended_license_session_id: Uuid::new_v4().to_string(),
            ended_capacity_session_id: Uuid::new_v4().to_string(),
            user_object_id: Uuid::new_v4().to_string(),
            capacity_id: Uuid::new_v4().to_string(),
            capacity_session_id: Uuid::new_v4().to_string(),
            plan: some_plan(),
            subscription_id: Uuid::new_v4().to_string(),
        };
        let near = Self {
            api: self.api,
            license_id: next_to(&self.license_id),
            license_key: format!("{}x", self.license_key),
            session_id: next_to(&self.session_id),
            device_session_id: next_to(&self.device_session_id),
            ended_device_session_id: next_to(&self.ended_device_session_id),
            ended_license_session_id: next_to(&self.ended_license_session_id),
            ended_capacity_session_id: next_to(&self.ended_capacity_session_id),
            user_object_id: next_to(&self.user_object_id),
            capacity_id: next_to(&self.capacity_id),
            capacity_session_id: next_to(&self.capacity_session_id),
            plan: format!("{}x", self.plan),
            subscription_id: next_to(&self.subscription_id),
        };
        [random, near]
    }

    /// Sends the request of a line, with a token or without.
    pub(super) async fn ask(&self, line: &Line, token: Option<&str>) -> Answer {
        let (method, path) = line.operation.split_once(' ').unwrap();
        let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
        let mut request = self.api.request(method, &self.filled(line, &format!("{path}{}", line.query)));
        // An event stream of an ended session is refused when the client has already seen the end.
        request = request.header("Last-Event-ID", "0-ended");
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if !line.body.is_empty() {
            request = request.header("Content-Type", "application/json").body(self.filled(line, line.body));
        }
        exchange(request).await
    }

    fn filled(&self, line: &Line, template: &str) -> String {
        let session_id = match line.of {
            Of::License => &self.session_id,
            Of::Device => &self.device_session_id,
            Of::EndedDevice => &self.ended_device_session_id,
            Of::Capacity => &self.capacity_session_id,
            Of::EndedLicense => &self.ended_license_session_id,
            Of::EndedCapacity => &self.ended_capacity_session_id,
        };
        template
            .replace("{license_id}", &self.license_id)
            .replace("{license_key}", &self.license_key)
            .replace("{later_session_id}", LATER_SESSION_ID)
            .replace("{session_id}", session_id)
            .replace("{tenant}", &self.api.tenant)
            .replace("{user_object_id}", &self.user_object_id)
            .replace("{capacity_id}", &self.capacity_id)
            .replace("{batch_id}", BATCH_ID)
            .replace("{job}", JOB)
            .replace("{plan}", &self.plan)
            .replace("{subscription_id}", &self.subscription_id)
    }
}

/// Returns a plan name. Every such name sorts between the same two predefined plans.
fn some_plan() -> String {
    format!("plan-{}", Uuid::new_v4())
}

fn next_to(id: &str) -> String {
    Uuid::from_u128(Uuid::try_parse(id).unwrap().as_u128() ^ 1).to_string()
}
