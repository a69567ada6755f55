//! The first region is lost, and then the second region: the third region adopts the pools of both.

use std::time::{Duration, Instant};

use seatkeeper_server::{AdoptedCounts, adopt};
use serde_json::{Value, json};

use crate::adoption::{
    DEADLINE, TTL_SECONDS, acquire, admits_from_millis, beat, keep, now_millis, play, world_with,
};
use crate::world::{AP, EU, US, World, region_of};

/// Asserts that a heartbeat of each subscriber's session is answered in a region.
async fn assert_live(world: &World, region: usize, live: &[(&str, &Value)]) {
    for (user, session) in live {
        assert_eq!(beat(world, region, user, session).await, 204, "{user}");
    }
}

/// Keeps the sessions alive until the successor of `lost` admits. Nobody is admitted to a silent pool before.
async fn silence_ends(world: &World, (region, lost): (usize, usize), live: &[(&str, &Value)], seat: &Value) {
    let admits_from = admits_from_millis(world, region, lost).await;
    let began = Instant::now();
    while now_millis() <= admits_from + 500 {
        assert_live(world, AP, live).await;
        assert_eq!(keep(world, AP, seat).await, 200);
        let asked_at = now_millis();
        let answer = play(world, AP, "fred", "tablet").await;
        assert!(answer.status == 503 || now_millis() >= admits_from, "{} at {asked_at}", answer.status);
        assert!(began.elapsed() < DEADLINE, "the silence does not end");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Adopts a lost region, while the clients of sessions elsewhere go on: the screen of a subscriber, and a seat in `AP`.
async fn adopt_while_kept(
    world: &World,
    (lost, name, into): (usize, &str, &str),
    (region, user, screen): (usize, &str, &Value),
    seat: &Value,
) -> AdoptedCounts {
    let kept = async {
        loop {
            beat(world, region, user, screen).await;
            keep(world, AP, seat).await;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    tokio::select! {
        adopted = adopt(&world.settings[lost], name, into) => adopted.unwrap().counts.expect("a first adoption"),
        never = kept => never,
    }
}

async fn two_regions_are_lost_one_after_the_other(shares: [bool; 3]) {
    // Long enough for the copies of databases between two heartbeats.
    let mut world = world_with(shares, 2 * TTL_SECONDS).await;
    world.subscribe(EU, "ann").await;
    let ann = play(&world, EU, "ann", "tv").await.expect(201)["session_id"].clone();
    let carl = play(&world, US, "carl", "tv").await.expect(201)["session_id"].clone();
    let dora = play(&world, EU, "dora", "tv").await.expect(201)["session_id"].clone();
    let license = world.license(AP, 2).await;
    let seat = acquire(&world, AP, &license, "m1").await.expect(201)["session_id"].clone();
    assert_eq!((region_of(&ann), region_of(&carl), region_of(&seat)), (1, 2, 1));

    world.back_up(EU).await;
    // Neither is in the backup: a home that two regions learned, and a home that went to the second region.
    play(&world, EU, "fred", "tv").await.expect(201);
    play(&world, US, "fred", "phone").await.expect(201);
    let relocation = json!({ "user": "dora", "to": "us" });
    world.admin(EU).post("/api/v1/admin/homes/moves", relocation).await.expect(200);
    world.lose(EU).await;
    adopt_while_kept(&world, (EU, "eu", "us"), (US, "carl", &carl), &seat).await;
    let live = [("ann", &ann), ("carl", &carl), ("dora", &dora)];
    silence_ends(&world, (US, EU), &live, &seat).await;
    let phone = play(&world, AP, "ann", "phone").await.expect(201)["session_id"].clone();
    let live = [live.as_slice(), &[("ann", &phone)]].concat();
    play(&world, AP, "ann", "watch").await.expect(403);

    world.back_up(US).await;
    world.lose(US).await;
    let adopted = adopt_while_kept(&world, (US, "us", "ap"), (AP, "carl", &carl), &seat).await;
    assert_eq!(adopted.licenses, 1, "{adopted:?}");
    assert_live(&world, AP, &live).await;
    assert_eq!(keep(&world, AP, &seat).await, 200);
    silence_ends(&world, (AP, US), &live, &seat).await;
    // The limits hold in the last region, and new subscribers and licenses find their anchor there.
    play(&world, AP, "ann", "watch").await.expect(403);
    acquire(&world, AP, &license, "m2").await.expect(201);
    acquire(&world, AP, &license, "m3").await.expect(403);
    for user in ["fred", "eve"] {
        let session = play(&world, AP, user, "tv").await.expect(201)["session_id"].clone();
        assert_eq!(region_of(&session), 3, "{user}");
    }
    let regions = world.admin(AP).get("/api/v1/admin/regions").await.expect(200);
    for (name, successor) in [("eu", 2), ("us", 3)] {
        let region = regions["items"].as_array().unwrap().iter().find(|region| region["name"] == name);
        assert_eq!(region.unwrap()["adopted_by"], json!(successor), "{name}");
    }
    // Neither a lost region nor its successor is adopted once more.
    assert_eq!(adopt(&world.settings[US], "us", "ap").await.unwrap().counts, None);
    let refused = adopt(&world.settings[EU], "eu", "us").await.unwrap_err().to_string();
    assert!(refused.contains("us"), "{refused}");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_embedded_regions_are_lost_one_after_the_other() {
    two_regions_are_lost_one_after_the_other([false; 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_regions_with_redis_and_postgresql_are_lost_one_after_the_other() {
    two_regions_are_lost_one_after_the_other([true; 3]).await;
}
