//! `devices.when_down = "allow"`: while no node reaches Redis, each node admits devices by its own memory.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use seatkeeper_testbed::redis::{Memory, Redis};
use serde_json::{Value, json};

use super::support::{Nodes, answered};
use crate::harness::{Answer, Client, EventStream};
use crate::support::books::proof_of;
use crate::support::subscriber::Subscriber;

const DEVICES: &str = "/api/v1/devices/sessions";
const LIMIT: u32 = 2;

async fn watch(client: &Client, device: &str) -> Answer {
    answered(async || client.post(DEVICES, json!({ "device_id": device, "device_type": "tv" })).await).await
}

async fn beat(client: &Client, session: &Value) -> Answer {
    client.post(&format!("{DEVICES}/heartbeat"), json!({ "session_id": session })).await
}

fn path(session: &Value) -> String {
    format!("{DEVICES}/{}", session.as_str().expect("a session id"))
}

#[tokio::test]
async fn each_node_admits_up_to_the_limit_alone_and_all_of_it_is_on_record_and_over_when_redis_is_back() {
    let mut redis = Redis::start();
    let allow = &[("DEVICES_WHEN_DOWN", "allow"), ("DEVICES_DURABILITY", "ledger")];
    let nodes = Nodes::over_with(&[redis.url(), redis.url()], allow);
    let (admin, license) = (nodes.harnesses[0].admin(), nodes.harnesses[0].license(1).await);
    Subscriber::make(&admin, "ann", LIMIT, "evict").await;
    let anns: Vec<_> = nodes.harnesses.iter().map(|harness| harness.client("ann")).collect();
    let on_record = watch(&anns[0], "tv").await.expect(201)["session_id"].clone();
    let is_over = AtomicBool::new(false);

    let story = async {
        redis.kill();
        let mut alone = Vec::new();
        for ann in &anns {
            for (device, in_use) in [("phone", 1), ("tablet", 2)] {
                let admitted = watch(ann, device).await.expect(201);
                assert_eq!(
                    (&admitted["outcome"], &admitted["devices_in_use"]),
                    (&json!("admitted"), &json!(in_use))
                );
                alone.push(admitted["session_id"].clone());
            }
            // The node enforces the limit on its own sessions.
            let third = watch(ann, "laptop").await.expect(201);
            assert_eq!(third["evicted_session_ids"], json!([alone[alone.len() - 2]]));
            assert_eq!(third["devices_in_use"], LIMIT);
            alone.push(third["session_id"].clone());
            answered(async || ann.get("/readyz").await).await.expect(200);
        }
        for ann in &anns {
            for session in [1, 2, 4, 5] {
                beat(ann, &alone[session]).await.expect(204);
            }
            assert_eq!(beat(ann, &alone[0]).await.expect(410)["reason"], "evicted");
            // The session may be live at another node, and cannot be ended from this node.
            ann.delete(&path(&on_record)).await.expect(503);
            ann.delete(DEVICES).await.expect(503);
        }
        anns[0].delete(&path(&alone[2])).await.expect(204);
        assert_eq!(beat(&anns[1], &alone[2]).await.expect(410)["reason"], "revoked");
        let bob = nodes.harnesses[1].client("bob");
        beat(&bob, &alone[1]).await.expect(503);
        // Meanwhile the ledger's database serves licenses.
        let seat = answered(async || bob.acquire(&license["license_key"], "bob").await).await;
        assert!([200, 201].contains(&seat.status), "{:#}", seat.body);

        redis.start_again(Memory::Lost);
        while beat(&anns[0], &alone[1]).await.status == 204 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        for session in [1, 4, 5] {
            for ann in &anns {
                let over = answered(async || beat(ann, &alone[session]).await).await;
                assert_eq!(over.expect(410)["reason"], "expired");
            }
        }
        let phone = watch(&anns[1], "phone").await.expect(201);
        assert_eq!((&phone["outcome"], &phone["devices_in_use"]), (&json!("admitted"), &json!(LIMIT)));
        is_over.store(true, Relaxed);
        let laptop = watch(&anns[0], "laptop").await.expect(201);
        assert_eq!(
            (&laptop["outcome"], &laptop["devices_in_use"]),
            (&json!("admitted_with_eviction"), &json!(LIMIT))
        );
        alone
    };
    let goes_on = async {
        while !is_over.load(Relaxed) {
            for ann in &anns {
                let status = beat(ann, &on_record).await.status;
                assert!([204, 503].contains(&status), "{status}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let (alone, ()) = tokio::join!(story, goes_on);
    let listed = admin.get("/api/v1/admin/audit?action=admitted_alone").await.expect(200);
    let listed: Vec<_> =
        listed["items"].as_array().expect("a list").iter().map(|item| &item["session_id"]).collect();
    assert_eq!(listed, alone.iter().rev().collect::<Vec<_>>());
    let closed = nodes.close();
    assert_eq!(proof_of(&closed.ledger).await.node_local, alone.len() as u64);
}

#[tokio::test]
async fn a_stream_from_before_the_outage_stays_open_and_a_new_one_is_refused_until_redis_is_back() {
    let mut redis = Redis::start();
    let allow = &[("DEVICES_WHEN_DOWN", "allow"), ("DEVICES_DURABILITY", "ledger")];
    let nodes = Nodes::over_with(&[redis.url()], allow);
    let [ann, bob] = ["ann", "bob"].map(|user| nodes.harnesses[0].client(user));
    let tv = watch(&ann, "tv").await.expect(201)["session_id"].clone();
    let events = format!("{}/events", path(&tv));
    let mut stream = EventStream::open(&ann, &events, None).await.expect("a stream");

    redis.kill();
    watch(&bob, "phone").await.expect(201);
    for last_id in [None, Some(&*stream.last_id)] {
        let refused = EventStream::open(&ann, &events, last_id).await.expect_err("no stream");
        assert!(refused.headers.contains_key("retry-after"), "{:?}", refused.headers);
        refused.expect(503);
    }

    redis.start_again(Memory::Lost);
    answered(async || ann.delete(&path(&tv)).await).await.expect(204);
    assert_eq!(stream.next().await.expect("the stream is open").name, "revoked");
    let again = EventStream::open(&ann, &events, Some(&stream.last_id)).await.expect_err("no stream");
    again.expect(204);
    nodes.close();
}
