//! Subscriptions end while their devices ask for screens: each admission is by the terms in force at its time.

use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use futures_util::future::join_all;
use seatkeeper_server::wall_clock;
use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::Redis;
use serde_json::json;

use super::support::Nodes;
use crate::harness::Client;

const USERS: i32 = 20;

/// The least length of a subscription, much longer than a request. On a starved machine the first subscriptions are over
/// before the last begins, and their devices ask too late to show anything.
const SUBSCRIBED_FOR: TimeDelta = TimeDelta::seconds(12);

/// The time between the ends of two subscriptions. The ends come at every phase of the network's wavering.
const BETWEEN_ENDS: TimeDelta = TimeDelta::milliseconds(97);

/// Devices ask for this time before and after the end of the subscription.
const AROUND_END: TimeDelta = TimeDelta::milliseconds(400);

/// Requests to Redis wait for this time, so that a reading of the time is ahead of the next claim by the same time. Readings
/// that take 100 ms are not used.
const REQUESTS_WAIT: Duration = Duration::from_millis(70);

/// Claims pass at once for this time.
const REQUESTS_PASS: Duration = Duration::from_millis(50);

/// The devices of a viewer that ask at the same time, as many as the plan allows.
const DEVICES: [&str; 3] = ["tv", "tablet", "phone"];

/// A subscriber of a plan that evicts.
struct Viewer {
    client: Client,
    ends_at: DateTime<Utc>,
}

impl Viewer {
    async fn new(nodes: &Nodes, number: i32) -> Self {
        let user = format!("viewer-{number}");
        let ends_at = wall_clock::now() + SUBSCRIBED_FOR + BETWEEN_ENDS * number;
        let end = ends_at.to_rfc3339_opts(SecondsFormat::Millis, true);
        let ask = json!({ "user": user, "plan": "family", "ends_at": end });
        nodes.harnesses[0].admin().post("/api/v1/admin/subscriptions", ask).await.expect(201);
        Self { client: nodes.harnesses[0].client(&user), ends_at }
    }

    /// Takes screens around the end of the subscription. Each answer is a new admission.
    async fn claims_around_the_end(&self) {
        let early = self.ends_at - AROUND_END - wall_clock::now();
        tokio::time::sleep(early.to_std().unwrap_or_default()).await;
        join_all(DEVICES.map(|device| self.claims_for(device))).await;
    }

    async fn claims_for(&self, device: &str) {
        while wall_clock::now() < self.ends_at + AROUND_END {
            let ask = json!({ "device_id": device, "device_type": "tv" });
            let status = self.client.post("/api/v1/devices/sessions", ask).await.status;
            assert!([201, 503].contains(&status), "{status}");
        }
    }
}

/// Makes requests wait, and lets the requests pass, again and again.
async fn wavers(network: &Proxy) {
    loop {
        network.set(Network::RequestsWait);
        tokio::time::sleep(REQUESTS_WAIT).await;
        network.set(Network::Well);
        tokio::time::sleep(REQUESTS_PASS).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_admission_before_the_end_of_a_subscription_is_decided_as_after_the_end() {
    let redis = Redis::start();
    let to_redis = Proxy::start(([127, 0, 0, 1], redis.port()).into(), 0).await;
    let nodes = tokio::task::block_in_place(|| Nodes::over(&[format!("redis://{}", to_redis.address())]));
    let plan = json!({ "name": "family", "device_limit": 3, "when_full": "evict" });
    nodes.harnesses[0].admin().post("/api/v1/admin/plans", plan).await.expect(201);
    let mut viewers = Vec::new();
    for number in 0..USERS {
        viewers.push(Viewer::new(&nodes, number).await);
    }
    let claims = join_all(viewers.iter().map(Viewer::claims_around_the_end));
    tokio::select! {
        _ = claims => {}
        () = wavers(&to_redis) => {}
    }
    to_redis.set(Network::Well);
    drop(nodes.close());
}
