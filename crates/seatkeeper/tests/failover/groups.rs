//! Groups that watch together, through the loss of Redis's memory, over PostgreSQL alone, and through killed servers.

mod in_between;
mod lost_master;

use std::time::{Duration, Instant};

use seatkeeper_testbed::clock::Clock;
use seatkeeper_testbed::postgres;
use seatkeeper_testbed::redis::{Memory, Redis};
use serde_json::{Value, json};

use super::support::{Nodes, answered};
use crate::harness::{Client, EventStream};
use crate::support::subscriber::Subscriber;

const DEVICES: &str = "/api/v1/devices/sessions";
const GROUPS: &str = "/api/v1/devices/groups";

/// Time limit for an event at one node to reach a stream at another node, on a busy machine. Half the pause between two
/// looks of a stream without a notice.
const TOLD_WITHIN: Duration = Duration::from_secs(5);

const HOUR: Duration = Duration::from_secs(3_600);

/// Screens that do not expire during a test, on a busy machine.
const LASTING: &[(&str, &str)] = &[("DEVICES_TTL_SECONDS", "600")];

/// The times that a stream is waited for.
const ROUNDS_MAX: usize = 3;

fn device(id: &str) -> Value {
    json!({ "device_id": id, "device_type": "tv" })
}

/// Subscribes `ann` to a plan with one screen and groups of three, guests among them.
async fn subscribed(nodes: &Nodes) {
    let admin = nodes.harnesses[0].admin();
    let ann = Subscriber::make(&admin, "ann", 1, "evict").await;
    let rules = json!({ "group_members_max": 3, "group_scope": "any_user" });
    admin.patch(&ann.plan_path(), Some(rules)).await.expect(200);
}

/// Returns the clients of a user, one for each node.
fn clients(nodes: &Nodes, user: &str) -> Vec<Client> {
    nodes.harnesses.iter().map(|harness| harness.client(user)).collect()
}

async fn create(client: &Client, id: &str) -> Value {
    let session = client.post(DEVICES, device(id)).await.expect(201)["session_id"].clone();
    let mut ask = device(id);
    ask["session_id"] = session;
    client.post(GROUPS, ask).await.expect(201)
}

async fn join(client: &Client, code: &Value, id: &str, status: u16) -> Value {
    let mut ask = device(id);
    ask["join_code"] = code.clone();
    answered(async || client.post(&format!("{GROUPS}/join"), ask.clone()).await).await.expect(status)
}

async fn beat(client: &Client, session: &Value, status: u16) -> Value {
    let ask = json!({ "session_id": session });
    answered(async || client.post(&format!("{GROUPS}/heartbeat"), ask.clone()).await).await.expect(status)
}

/// A group of the subscriber `ann` with a guest, made and joined at different nodes.
struct Party {
    host: Value,
    guest: Value,
}

impl Party {
    async fn meet(ann: &[Client], bob: &[Client]) -> Self {
        let host = create(&ann[0], "tv").await;
        let guest = join(&bob[1], &host["join_code"], "phone", 201).await;
        Self { host, guest }
    }

    /// Asserts at every node: two live members, room for a third member, and a single screen for ann.
    async fn lives(&self, ann: &[Client], bob: &[Client]) {
        for (ann, bob) in ann.iter().zip(bob) {
            assert_eq!(beat(ann, &self.host["session_id"], 200).await["members"], 2);
            let alive = beat(bob, &self.guest["session_id"], 200).await;
            assert_eq!(alive["host_session_id"], self.host["session_id"]);
        }
        let third = join(&bob[2], &self.host["join_code"], "tablet", 201).await;
        join(&bob[0], &self.host["join_code"], "watch", 403).await;
        let ask = json!({ "group_id": self.host["group_id"], "session_id": third["session_id"] });
        let left = answered(async || bob[1].post(&format!("{GROUPS}/leave"), ask.clone()).await).await;
        // A retry after a 503 may find the member gone.
        assert!([204, 404, 410].contains(&left.status), "{:#}", left.body);
        let screens = answered(async || ann[1].get(DEVICES).await).await.expect(200);
        assert_eq!(screens["items"].as_array().map(Vec::len), Some(1), "{screens:#}");
    }

    /// Evicts the group by a new device, and asserts that both members hear.
    async fn is_evicted(&self, ann: &[Client], bob: &[Client]) {
        let newcomer = answered(async || ann[2].post(DEVICES, device("projector")).await).await.expect(201);
        assert_eq!(newcomer["evicted_session_ids"], json!([self.host["group_id"]]));
        assert_eq!(beat(&bob[0], &self.guest["session_id"], 410).await["reason"], "evicted");
        assert_eq!(beat(&ann[1], &self.host["session_id"], 410).await["reason"], "evicted");
        join(&bob[1], &self.host["join_code"], "phone", 403).await;
    }
}

#[tokio::test]
async fn a_redis_that_loses_its_memory_gets_the_members_of_groups_back() {
    let mut redis = Redis::start();
    let nodes = Nodes::over_with(&[redis.url(), redis.url(), redis.url()], LASTING);
    subscribed(&nodes).await;
    let (ann, bob) = (clients(&nodes, "ann"), clients(&nodes, "bob"));
    let party = Party::meet(&ann, &bob).await;
    nodes.last_recorded().await;

    redis.kill();
    redis.start_again(Memory::Lost);

    party.lives(&ann, &bob).await;
    party.is_evicted(&ann, &bob).await;
    nodes.close();
}

/// A node alone refuses the group before the session of the device is given up.
#[tokio::test]
async fn a_group_that_a_node_alone_refuses_takes_no_session() {
    let mut redis = Redis::start();
    let nodes = Nodes::over_with(&[redis.url(), redis.url()], &[("DEVICES_WHEN_DOWN", "allow")]);
    subscribed(&nodes).await;
    let ann = &clients(&nodes, "ann")[0];
    let watch = async |id: &str| {
        answered(async || ann.post(DEVICES, device(id)).await).await.expect(201)["session_id"].clone()
    };
    let (before, path) = (watch("tv").await, format!("{DEVICES}/heartbeat"));
    redis.kill();
    let alone = watch("phone").await;
    for session in [&alone, &before] {
        let mut ask = device("phone");
        ask["session_id"] = session.clone();
        ann.post(GROUPS, ask).await.expect(503);
    }
    ann.post(&path, json!({ "session_id": alone })).await.expect(204);
    nodes.close();
}

#[tokio::test]
async fn groups_over_postgresql_alone_survive_a_killed_server_and_their_streams_hear() {
    let mut nodes = Nodes::in_ledger_with(3, LASTING);
    subscribed(&nodes).await;
    let (ann, bob) = (clients(&nodes, "ann"), clients(&nodes, "bob"));
    let party = Party::meet(&ann, &bob).await;
    party.lives(&ann, &bob).await;
    let group = party.host["group_id"].as_str().expect("an id");
    let stream = EventStream::open(&bob[2], &format!("{GROUPS}/{group}/events"), None).await;
    let mut stream = stream.expect("a stream");
    assert_eq!(stream.next().await.expect("the members").name, "group");

    nodes.harnesses[0].kill();
    beat(&ann[1], &party.host["session_id"], 200).await;
    let (admin, mut waits) = (nodes.harnesses[1].admin(), Vec::new());
    // On a busy machine a notice may be late once. Without a notice every wait is as long as the pause between two looks: the
    // event before came by a look as well.
    while waits.iter().all(|wait| *wait >= TOLD_WITHIN) {
        assert!(waits.len() < ROUNDS_MAX, "{waits:?}");
        let third = join(&bob[1], &party.host["join_code"], "tablet", 201).await;
        let joined = stream.next().await.expect("an event");
        assert_eq!(
            (joined.name.as_str(), &joined.data["session_id"]),
            ("member_joined", &third["session_id"])
        );
        let third = format!("/api/v1/admin/sessions/{}", third["session_id"].as_str().expect("an id"));
        admin.delete(&third).await.expect(204);
        let revoked = Instant::now();
        let left = stream.next().await.expect("an event");
        assert_eq!((left.name.as_str(), &left.data["reason"]), ("member_left", &json!("revoked")));
        waits.push(revoked.elapsed());
    }
    nodes.harnesses[0].start();

    let (ann, bob) = (clients(&nodes, "ann"), clients(&nodes, "bob"));
    party.is_evicted(&ann, &bob).await;
    let ended = stream.next().await.expect("an event");
    assert_eq!((ended.name.as_str(), &ended.data["reason"]), ("group_ended", &json!("evicted")));
    nodes.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_guest_needs_a_newer_code_whatever_the_clocks_of_the_nodes() {
    let (redis, database) = (Redis::start(), postgres::database());
    let (clocks, mut nodes) = ([Clock::new(), Clock::new()], Nodes::on_with(database.url(), LASTING));
    clocks[0].advance(HOUR);
    clocks[1].set_back(HOUR);
    clocks.iter().for_each(|clock| nodes.add_in(&clock.environment(), &redis.url()));
    subscribed(&nodes).await;
    let (ann, bob) = (clients(&nodes, "ann"), clients(&nodes, "bob"));
    let mut ask = device("tv");
    ask["session_id"] = ann[0].post(DEVICES, device("tv")).await.expect(201)["session_id"].clone();
    for ann in &ann {
        let host = ann.post(GROUPS, ask.clone()).await.expect(201);
        let mut guest = Value::Null;
        for bob in &bob {
            guest = join(bob, &host["join_code"], "phone", 201).await;
        }
        let removal = json!({ "group_id": host["group_id"], "session_id": guest["session_id"] });
        ann.post(&format!("{GROUPS}/leave"), removal).await.expect(204);
        for bob in &bob {
            join(bob, &host["join_code"], "phone", 403).await;
        }
    }
    drop(nodes.close());
}
