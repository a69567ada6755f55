//! A join code admits no device from its expiry on.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_registry::ManualClock;
use seatkeeper_server::auth::{TokenRequest, mint};
use seatkeeper_server::{Settings, start_with_clock};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::harness::{Client, TENANT};

/// A time in 2033, so that the machine's own clock is behind.
const START: RegistryTime = RegistryTime::from_millis(2_000_000_000_123);

const LIFETIME: Span = Span::from_secs(600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_join_code_counts_until_its_expiry() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut settings = Settings::default();
    settings.ledger.data_dir = dir.path().to_owned();
    settings.server.listen = ([127, 0, 0, 1], 0).into();
    settings.devices.ttl_seconds = 3_600;
    let (clock, stop) = (Arc::new(ManualClock::at(START)), CancellationToken::new());
    let running = start_with_clock(settings.clone(), stop.clone(), clock.clone()).await.expect("a server");
    let client = |user: &str, scopes: &str| {
        let ttl = Duration::from_secs(36_000);
        let request = TokenRequest { tenant: TENANT.into(), user: user.into(), scopes: scopes.into(), ttl };
        Client::new(&format!("http://{}", running.addr), mint(&settings, &request).expect("a token"))
    };
    let (admin, ann) = (client("ops", "admin"), client("ann", ""));
    let plan = json!({ "name": "pair", "device_limit": 2, "price_cents": 0, "group_members_max": 4 });
    admin.post("/api/v1/admin/plans", plan).await.expect(201);
    let subscription = json!({ "user": "ann", "plan": "pair" });
    admin.post("/api/v1/admin/subscriptions", subscription).await.expect(201);

    let mut tv = json!({ "device_id": "tv", "device_type": "tv" });
    tv["session_id"] =
        ann.post("/api/v1/devices/sessions", tv.clone()).await.expect(201)["session_id"].clone();
    let group = ann.post("/api/v1/devices/groups", tv).await.expect(201);
    let join = async |device: &str| {
        let code = &group["join_code"];
        let ask = json!({ "device_id": device, "device_type": "mobile", "join_code": code });
        ann.post("/api/v1/devices/groups/join", ask).await
    };
    clock.set(START + LIFETIME - Span::from_millis(1));
    join("phone").await.expect(201);
    clock.set(START + LIFETIME);
    assert_eq!(join("tablet").await.expect(403)["type"], "/problems/join-code-refused");
    stop.cancel();
    running.finished().await;
}
