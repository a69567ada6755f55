//! Fallback: while Redis is unreachable for all nodes, the ledger's database serves licenses, and hands them
//! back afterwards.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use seatkeeper_testbed::redis::{Memory, Redis};
use serde_json::{Value, json};

use super::support::{Nodes, answered, denied, ended, released, renewed, seat, seated};
use crate::harness::{Answer, Client};

const DEVICES: &str = "/api/v1/devices/sessions";

const PAUSE: Duration = Duration::from_millis(50);

#[tokio::test]
async fn licenses_are_served_from_the_ledger_while_redis_is_gone_and_none_is_lost_on_either_way() {
    let mut redis = Redis::start();
    let on_record = &[("DEVICES_DURABILITY", "ledger")];
    let mut nodes = Nodes::over_with(&[redis.url(), redis.url(), redis.url()], on_record);
    let (license, clients) = (nodes.harnesses[0].license(3).await, nodes.clients());
    let key = &license["license_key"];
    let viewers = ["dan", "eve", "flo"];
    let viewers: Vec<_> =
        nodes.harnesses.iter().zip(viewers).map(|(harness, user)| harness.client(user)).collect();
    let ann = seat(&clients[0], &license, "ann").await;
    let tv = watch(&clients[0], "tv").await.expect(201)["session_id"].clone();
    let is_over = AtomicBool::new(false);
    // A node that is down when Redis is lost, and starts during the outage.
    let other = nodes.harnesses[0].license(1).await;
    nodes.add(&redis.url());
    let mut late = nodes.harnesses.pop().expect("a node");
    late.kill();

    let story = async {
        redis.kill();
        let bob = seated(&clients[1], key, "bob").await;
        let carl = seated(&clients[2], key, "carl").await;
        for (client, viewer) in clients.iter().zip(&viewers) {
            denied(client, key, "dora").await;
            answered(async || client.get("/readyz").await).await.expect(200);
            let denied = watch(viewer, "phone").await;
            assert!(denied.headers.contains_key("retry-after"), "{denied:?}");
            denied.expect(503);
        }
        released(&clients[0], &bob["session_id"]).await;
        ended(&clients[1], &bob["session_id"]).await;
        seated(&clients[2], key, "dora").await;
        late.start();
        seat(&late.client("crowd"), &other, "emil").await;
        // A session served by the ledger's database can be renewed at any node.
        renewed(&clients[0], &carl["session_id"]).await;

        redis.start_again(Memory::Lost);
        for viewer in &viewers {
            answered(async || watch(viewer, "phone").await).await.expect(201);
        }
        renewed(&clients[1], &carl["session_id"]).await;
        ended(&clients[2], &bob["session_id"]).await;
        denied(&clients[0], key, "emil").await;
        is_over.store(true, Relaxed);
    };
    tokio::join!(story, never_ended(&clients, &ann, &tv, &is_over));
    nodes.harnesses.push(late);
    nodes.close();
}

#[tokio::test]
async fn a_crowd_gets_as_many_seats_as_there_are_through_the_loss_of_redis_and_its_return() {
    const SEATS: u32 = 5;
    let mut redis = Redis::start();
    let nodes = Nodes::over(&[redis.url(), redis.url(), redis.url()]);
    let (license, clients) = (nodes.harnesses[0].license(SEATS).await, nodes.clients());
    let key = &license["license_key"];
    let other = nodes.harnesses[0].license(1).await;
    let is_over = AtomicBool::new(false);
    let machine = async |number: usize| {
        let (client, name) = (&clients[number % clients.len()], format!("machine-{number}"));
        while !is_over.load(Relaxed) {
            let answer = client.acquire(key, &name).await;
            match answer.status {
                201 | 200 => return Some(answer.body["session_id"].clone()),
                403 | 503 => tokio::time::sleep(PAUSE).await,
                _ => panic!("{:#}", answer.body),
            }
        }
        None
    };
    let story = async {
        redis.kill();
        tokio::time::sleep(Duration::from_secs(1)).await;
        seated(&clients[0], &other["license_key"], "ann").await;
        redis.start_again(Memory::Lost);
        answered(async || watch(&clients[1], "tv").await).await.expect(201);
        is_over.store(true, Relaxed);
    };
    let (_, seats) = tokio::join!(story, futures_util::future::join_all((0..12).map(machine)));
    let seats: Vec<Value> = seats.into_iter().flatten().collect();
    assert_eq!(seats.len(), SEATS as usize, "{seats:?}");
    for seat in &seats {
        renewed(&clients[2], seat).await;
    }
    nodes.close();
}

/// Asks for a screen.
async fn watch(client: &Client, device: &str) -> Answer {
    client.post(DEVICES, json!({ "device_id": device, "device_type": "tv", "device_name": device })).await
}

/// Renews a seat and a screen at every node until `is_over`. No answer may say that a session has ended.
async fn never_ended(clients: &[Client], seat: &Value, screen: &Value, is_over: &AtomicBool) {
    while !is_over.load(Relaxed) {
        for client in clients {
            let beat = client.heartbeat(seat).await;
            assert!([200, 503].contains(&beat.status), "{beat:?}");
            let screen = json!({ "session_id": screen });
            let beat = client.post(&format!("{DEVICES}/heartbeat"), screen).await;
            assert!([204, 503].contains(&beat.status), "{beat:?}");
        }
        tokio::time::sleep(PAUSE).await;
    }
}
