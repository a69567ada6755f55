//! Requests that are repeated after the pool has gone to another region: nothing takes effect a second time.

use seatkeeper_server::adopt;
use serde_json::{Value, json};

use crate::adoption::{beat, play};
use crate::harness::Answer;
use crate::moves::relocate;
use crate::world::{AP, EU, NAMES, US, World};

const DEVICES: &str = "/api/v1/devices/sessions";

const SUBSCRIPTIONS: &str = "/api/v1/admin/subscriptions";

/// Sends a write of an admin under an idempotency key.
async fn write_once(world: &World, region: usize, path: &str, body: &Value) -> Answer {
    let admin = world.admin(region);
    let request = admin.http.post(format!("{}{path}", admin.url())).bearer_auth(&admin.token);
    let request = request.header("Idempotency-Key", "once").json(body);
    Answer::read(request.send().await.unwrap()).await.unwrap()
}

/// The answer to an acquire is lost, and the home moves before the repetition. The device takes no second screen: as in
/// its old home, a claim that names no session supersedes the device's own session.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_acquire_takes_no_second_screen_in_the_new_home() {
    let world = World::start().await;
    world.create_plan().await;
    world.subscribe(US, "ann").await;
    let mut held = play(&world, US, "ann", "tv").await.expect(201)["session_id"].clone();
    relocate(&world, EU, "ann", AP).await.expect(200);
    for region in [US, EU, AP] {
        let repeated = play(&world, region, "ann", "tv").await.expect(201);
        assert_eq!(repeated["devices_in_use"], 1);
        assert_eq!(beat(&world, region, "ann", &held).await, 410);
        held = repeated["session_id"].clone();
        let named = json!({ "device_id": "tv", "device_type": "tv", "session_id": held });
        let named = world.client(region, "ann").post(DEVICES, named).await.expect(200);
        assert_eq!((&named["session_id"], &named["devices_in_use"]), (&held, &json!(1)));
    }
    world.close().await;
}

/// The kept answer goes along with the home, from region to region.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_subscription_gets_the_first_answer_in_the_new_home() {
    let world = World::start().await;
    world.create_plan().await;
    world.client(US, "ann").get(DEVICES).await.expect(200);
    let wanted = json!({ "user": "ann", "plan": "pair" });
    let first = write_once(&world, EU, SUBSCRIPTIONS, &wanted).await.expect(201);
    for to in [AP, EU] {
        relocate(&world, US, "ann", to).await.expect(200);
        let active = format!("{SUBSCRIPTIONS}?user=ann&status=active");
        let arrived = world.admin(to).get(&active).await.expect(200);
        // A second subscription would take the place of the one that is cancelled meanwhile.
        for subscription in arrived["items"].as_array().unwrap() {
            let path = format!("{SUBSCRIPTIONS}/{}", subscription["subscription_id"].as_str().unwrap());
            world.admin(to).delete(&path).await.expect(204);
        }
        for region in [US, EU, AP] {
            assert_eq!(write_once(&world, region, SUBSCRIPTIONS, &wanted).await.expect(201), first);
        }
        assert_eq!(world.admin(to).get(&active).await.expect(200)["items"], json!([]));
    }
    let other = json!({ "user": "ann", "plan": "pair", "ends_at": "2099-01-01T00:00:00Z" });
    let refused = write_once(&world, US, SUBSCRIPTIONS, &other).await;
    assert_eq!(refused.expect(422)["type"], "/problems/idempotency-key-reused");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_license_gets_the_first_answer_from_the_successor() {
    let mut world = crate::adoption::world().await;
    let licenses = "/api/v1/admin/licenses";
    let first = write_once(&world, AP, licenses, &json!({ "max_seats": 3 })).await.expect(201);
    world.back_up(EU).await;
    world.lose(EU).await;
    adopt(&world.settings[EU], NAMES[EU], NAMES[US]).await.unwrap().counts.expect("a first adoption");
    for region in [US, AP] {
        let repeated = write_once(&world, region, licenses, &json!({ "max_seats": 3 })).await.expect(201);
        assert_eq!(repeated["license_id"], first["license_id"]);
        assert_eq!(repeated["license_key"], first["license_key"]);
    }
    let listed = world.admin(AP).get(licenses).await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed:#}");
    world.close().await;
}
