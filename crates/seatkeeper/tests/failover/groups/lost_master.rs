//! Groups over a Redis Cluster that has lost one of three masters: a third of the screens is there, and a third of the
//! groups.

use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_testbed::redis::{RedisCluster, RedisSetup};
use serde_json::{Value, json};

use super::{DEVICES, GROUPS, create, device};
use crate::failover::support::{Nodes, SERVED_WAIT_MAX, answered};
use crate::harness::Client;
use crate::support::books::opened;
use crate::until::within;

/// Screens that do not expire during the test, on nodes that admit devices alone while Redis is away.
const LASTING_ALONE: &[(&str, &str)] = &[("DEVICES_TTL_SECONDS", "600"), ("DEVICES_WHEN_DOWN", "allow")];

/// So many users have some screens on each master, and some groups.
const USERS: usize = 24;

/// A user with a group and a further device beside the group.
struct Household {
    client: Client,
    host: Value,
    beside: Value,
}

impl Household {
    async fn meet(nodes: &Nodes, user: &str) -> Self {
        let ask = json!({ "user": user, "plan": "family" });
        nodes.harnesses[0].admin().post("/api/v1/admin/subscriptions", ask).await.expect(201);
        let client = nodes.harnesses[0].client(user);
        let host = create(&client, "tv").await;
        let beside = client.post(DEVICES, device("phone")).await.expect(201)["session_id"].clone();
        Self { client, host, beside }
    }

    /// Asks for a group of the further device.
    fn creation(&self) -> Value {
        let mut ask = device("phone");
        ask["session_id"] = self.beside.clone();
        ask
    }

    async fn is_beside_alive(&self) -> bool {
        let ask = json!({ "session_id": self.beside });
        self.client.post(&format!("{DEVICES}/heartbeat"), ask).await.status == 204
    }
}

/// Waits until the nodes have given up a part of the cluster, and are ready for the rest.
async fn given_up_in_part(nodes: &Nodes) {
    let (ledger, client) = (opened(nodes.ledger()).await, nodes.harnesses[0].admin());
    within(SERVED_WAIT_MAX, "nodes serve devices alone", async || {
        let rows = ledger.buckets().await.map_err(|error| error.to_string())?;
        let alone = rows.iter().filter(|row| row.mode == BucketMode::Allow).count();
        let ready = client.get("/readyz").await.status;
        if alone > 0 && ready == 200 { Ok(()) } else { Err(format!("{alone} buckets, readiness {ready}")) }
    })
    .await;
}

/// A session that is given up for a group cannot come back, and a code that is refused is thrown away.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn beside_a_lost_master_no_session_is_given_up_for_a_group_and_no_code_is_refused() {
    let cluster = tokio::task::block_in_place(|| RedisCluster::start(3, &RedisSetup::default()));
    let nodes =
        tokio::task::block_in_place(|| Nodes::over_with(&[cluster.url(), cluster.url()], LASTING_ALONE));
    let plan = json!({ "name": "family", "device_limit": 2, "group_members_max": 3 });
    nodes.harnesses[0].admin().post("/api/v1/admin/plans", plan).await.expect(201);
    let mut households = Vec::new();
    for number in 0..USERS {
        households.push(Household::meet(&nodes, &format!("user-{number}")).await);
    }
    cluster.nodes()[0].pause();
    given_up_in_part(&nodes).await;

    let mut served = 0;
    for household in &households {
        if household.is_beside_alive().await {
            served += 1;
            household.client.post(GROUPS, household.creation()).await.expect(503);
            assert!(household.is_beside_alive().await, "its session was given up");
        }
    }
    assert!(served > 0, "two masters serve");
    for household in &households {
        let mut ask = device("tablet");
        ask["join_code"] = household.host["join_code"].clone();
        let joined = household.client.post(&format!("{GROUPS}/join"), ask).await;
        assert!([201, 503].contains(&joined.status), "{:#}", joined.body);
    }

    cluster.nodes()[0].resume();
    nodes.redis_serves_again().await;
    for household in &households {
        let created = answered(async || household.client.post(GROUPS, household.creation()).await).await;
        // A device that a node served alone may have lost its session.
        assert!([201, 404].contains(&created.status), "{:#}", created.body);
    }
    drop(nodes.close());
}
