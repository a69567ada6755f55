//! Groups, and moves of the subscriber's home.

use std::time::{Duration, Instant};

use seatkeeper_core::{Region, TenantId, UserId};
use seatkeeper_ledger::{Ledger, Settings};
use serde_json::{Value, json};

use crate::harness::Client;
use crate::world::{AP, EU, TENANT, US, World, region_of, screen};

const DEVICES: &str = "/api/v1/devices/sessions";
const GROUPS: &str = "/api/v1/devices/groups";

/// The deadline of conditions that the job `moves` brings about.
const DEADLINE: Duration = Duration::from_secs(40);

/// Makes a group of a new device.
async fn meet(client: &Client, device: &str) -> Value {
    let mut ask = screen(device);
    ask["session_id"] = client.post(DEVICES, screen(device)).await.expect(201)["session_id"].clone();
    client.post(GROUPS, ask).await.expect(201)
}

/// Waits until a member hears of the end of the group, and returns the answer.
async fn over(client: &Client, member: &Value) -> Value {
    let began = Instant::now();
    loop {
        let answer = client.post(&format!("{GROUPS}/heartbeat"), json!({ "session_id": member })).await;
        match answer.status {
            410 => return answer.body,
            200 | 503 => assert!(began.elapsed() < DEADLINE, "{:#}", answer.body),
            status => panic!("{status}: {:#}", answer.body),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// A request for a move looks for groups, and a group may begin between the look and the record of the move.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_that_begins_beside_a_move_ends_and_its_devices_hear() {
    let world = World::start_with([false, true, false], |_| {}).await;
    for region in [EU, US, AP] {
        let plan = json!({
            "name": "pair", "device_limit": 2, "price_cents": 0, "when_full": "deny", "group_members_max": 3
        });
        world.admin(region).post("/api/v1/admin/plans", plan).await.expect(201);
    }
    world.subscribe(US, "ann").await;
    let ann = world.client(US, "ann");
    let host = meet(&ann, "tv").await;
    let mut guest = screen("phone");
    guest["join_code"] = host["join_code"].clone();
    let guest = ann.post(&format!("{GROUPS}/join"), guest).await.expect(201);
    let alone = ann.post(DEVICES, screen("tablet")).await.expect(201);

    let ledger = Ledger::open(Settings::new(world.ledger(US))).await.unwrap();
    let (tenant, user) = (TenantId::new(TENANT), UserId::new("ann"));
    ledger.begin_home_move(&tenant, &user, Region::new(2), Region::new(3)).await.unwrap();
    for member in [&host, &guest] {
        assert_eq!(over(&ann, &member["session_id"]).await["reason"], "revoked");
    }

    let began = Instant::now();
    let next = loop {
        let answer = world.client(AP, "ann").post(DEVICES, screen("projector")).await;
        if answer.status != 503 || began.elapsed() > DEADLINE {
            break answer.expect(201);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(region_of(&next["session_id"]), 3, "the screen of the group is free");
    let beat = json!({ "session_id": alone["session_id"] });
    world.client(AP, "ann").post(&format!("{DEVICES}/heartbeat"), beat).await.expect(204);
    ledger.close().await;
    world.close().await;
}
