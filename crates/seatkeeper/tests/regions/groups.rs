//! Groups: used from every region, and beside moves of the subscriber's home.

use std::time::{Duration, Instant};

use seatkeeper_core::{Region, TenantId, UserId};
use seatkeeper_ledger::{Ledger, Settings};
use seatkeeper_testbed::proxy::Network;
use serde_json::{Value, json};

use crate::harness::{Client, EventStream};
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

/// Creates a plan whose groups take guests, in every region, and subscribes Ann in `us`.
async fn invite(world: &World) {
    for region in [EU, US, AP] {
        let plan = json!({
            "name": "pair", "device_limit": 2, "price_cents": 0, "when_full": "deny",
            "group_members_max": 3, "group_scope": "any_user"
        });
        world.admin(region).post("/api/v1/admin/plans", plan).await.expect(201);
    }
    world.subscribe(US, "ann").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_used_from_every_region_also_by_a_guest_at_home_elsewhere() {
    let world = World::start().await;
    invite(&world).await;
    world.client(AP, "bob").post(DEVICES, screen("watch")).await.expect(201);
    let host = meet(&world.client(EU, "ann"), "tv").await;
    let group = &host["group_id"];
    assert_eq!(region_of(group), 2, "the group is at home with its subscriber");
    let join = async |region: usize, user: &str, device: &str| {
        let mut ask = screen(device);
        ask["join_code"] = host["join_code"].clone();
        world.client(region, user).post(&format!("{GROUPS}/join"), ask).await
    };
    let guest = join(AP, "bob", "phone").await.expect(201);
    let own = join(EU, "ann", "tablet").await.expect(201);
    assert_eq!(join(US, "ann", "laptop").await.expect(403)["type"], "/problems/group-full");
    let path = format!("{GROUPS}/{}", group.as_str().unwrap());
    let shown = world.client(AP, "ann").get(&path).await.expect(200);
    assert_eq!(shown["members"].as_array().map(Vec::len), Some(3));

    let bob = world.client(AP, "bob");
    let mut stream = EventStream::open(&bob, &format!("{path}/events"), None).await.unwrap();
    assert_eq!(stream.next().await.expect("the present members").name, "group");
    let leave = json!({ "group_id": group, "session_id": host["session_id"] });
    world.client(AP, "ann").post(&format!("{GROUPS}/leave"), leave).await.expect(204);
    assert_eq!(stream.next().await.expect("the leave").name, "member_left");
    assert_eq!(stream.next().await.expect("the next host").data["host_session_id"], guest["session_id"]);
    for (user, member) in [("bob", &guest), ("ann", &own)] {
        for region in [EU, US, AP] {
            let beat = json!({ "session_id": member["session_id"] });
            let alive =
                world.client(region, user).post(&format!("{GROUPS}/heartbeat"), beat).await.expect(200);
            assert_eq!((&alive["host_session_id"], &alive["members"]), (&guest["session_id"], &json!(2)));
        }
    }

    // The group takes a single one of the two screens, and the guest has its own screen at home.
    world.client(AP, "ann").post(DEVICES, screen("console")).await.expect(201);
    world.client(EU, "ann").post(DEVICES, screen("projector")).await.expect(403);
    let listed = bob.get(DEVICES).await.expect(200);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed}");
    world.client(EU, "ann").delete(&format!("{DEVICES}/{}", group.as_str().unwrap())).await.expect(204);
    assert_eq!(stream.next().await.expect("the end").name, "group_ended");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_is_denied_while_its_home_is_unreachable() {
    let world = World::start().await;
    invite(&world).await;
    let host = meet(&world.client(US, "ann"), "tv").await;
    world.set_around(US, Network::Cut);
    let mut ask = screen("phone");
    ask["join_code"] = host["join_code"].clone();
    for region in [EU, AP] {
        let refused =
            world.client(region, "ann").post(&format!("{GROUPS}/join"), ask.clone()).await.expect(503);
        assert_eq!(refused["type"], "/problems/region-unavailable");
        let beat = json!({ "session_id": host["session_id"] });
        world.client(region, "ann").post(&format!("{GROUPS}/heartbeat"), beat).await.expect(503);
    }
    world.set_around(US, Network::Well);
    world.client(AP, "ann").post(&format!("{GROUPS}/join"), ask).await.expect(201);
    world.close().await;
}
