//! Regions that tell of moves that never were, with keys that are stolen or ledgers that are old: no subscriber gets a second
//! home.

use std::time::{Duration, Instant};

use reqwest::Method;
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::homes::Home;
use seatkeeper_server::adopt;
use seatkeeper_testbed::proxy::Network;
use serde_json::{Value, json};

use crate::adoption::{DEADLINE, admits_from_millis, beat, now_millis, play};
use crate::harness::Answer;
use crate::moves::{relocate, rewrite_home};
use crate::world::{AP, EU, NAMES, TENANT, US, World, region_of};

/// Tells the anchor, with the key of region `teller`, that a home is in a region.
async fn tell_anchor(world: &World, teller: usize, user: &str, (region, version): (usize, u64)) -> Answer {
    let token = world.region_token(teller, EU, None).await;
    let told = json!({ "tenant": TENANT, "user": user, "region": region + 1, "version": version });
    world.send_with(EU, user, &token, Method::POST, "/api/v1/regions/homes/moved", told).await
}

/// Hands a home over to region `to`, with the key of region `from`.
async fn hand_over(world: &World, from: usize, to: usize, user: &str, version: u64) -> Answer {
    let token = world.region_token(from, to, None).await;
    let handover = json!({
        "tenant": TENANT, "user": user, "version": version, "seq": 0, "limit": 0, "sessions": [], "subscription": null,
        "answers": [],
    });
    world.send_with(to, user, &token, Method::POST, "/api/v1/regions/homes/arrivals", handover).await
}

/// Asserts that a claim in `region` is decided in `home`, where it takes the only seat of the session `held`.
async fn assert_one_home(world: &World, region: usize, user: &str, (home, held): (usize, &Value)) {
    let next = play(world, region, user, "phone").await.expect(201);
    assert_eq!(usize::from(region_of(&next["session_id"])), home + 1, "{next:#}");
    assert_eq!(beat(world, home, user, held).await, 410);
}

async fn recorded(world: &World, region: usize, user: &str) -> Home {
    let ledger = Ledger::open_read_only(world.ledger(region)).await.unwrap();
    let home = ledger.home(&TENANT.into(), &user.into()).await.unwrap();
    ledger.close().await;
    home.expect("a home on record")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_anchor_believes_no_region_but_the_home_on_record() {
    let world = World::start().await;
    let held = play(&world, US, "ann", "tv").await.expect(201)["session_id"].clone();
    let told = tell_anchor(&world, AP, "ann", (AP, 5)).await;
    let handed = hand_over(&world, AP, EU, "ann", 6).await;
    assert_one_home(&world, EU, "ann", (US, &held)).await;
    assert_eq!(told.expect(409)["type"], "/problems/home-not-movable");
    assert_eq!(handed.expect(409)["type"], "/problems/home-not-movable");
    // The anchor puts no unknown subscriber in a region that did not ask.
    tell_anchor(&world, AP, "bob", (US, 2)).await.expect(409);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stolen_key_of_the_home_hands_no_home_over() {
    let world = World::start().await;
    let held = play(&world, US, "ann", "tv").await.expect(201)["session_id"].clone();
    let handed = hand_over(&world, US, AP, "ann", 2).await;
    assert_one_home(&world, AP, "ann", (US, &held)).await;
    handed.expect(409);
    world.close().await;
}

/// A region restored from a backup believes in a home that has left since: the home does not move on from there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_of_an_older_backup_does_not_move() {
    let world = World::start().await;
    let held = play(&world, US, "ann", "tv").await.expect(201)["session_id"].clone();
    world.client(AP, "ann").get("/api/v1/devices/sessions").await.expect(200);
    relocate(&world, EU, "ann", EU).await.expect(200);
    // `AP` has not heard of the move.
    rewrite_home(&world, US, "ann", "region = 2, version = 1, state = 'here'").await;
    let refused = relocate(&world, US, "ann", AP).await;
    let known = recorded(&world, AP, "ann").await;
    assert_eq!((known.region.number(), known.version), (2, 1), "`AP` has not taken the home over");
    assert_eq!(refused.expect(409)["detail"], "The anchor has a newer home of the subscriber on record.");
    assert_eq!(beat(&world, EU, "ann", &held).await, 204);
    rewrite_home(&world, US, "ann", "region = 1, version = 2, state = 'moved'").await;
    world.close().await;
}

/// The anchor has heard of no move, and the last region of several tells first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_anchor_catches_up_with_moves_that_it_missed() {
    let world = World::start().await;
    play(&world, US, "ann", "tv").await.expect(201);
    relocate(&world, US, "ann", AP).await.expect(200);
    rewrite_home(&world, EU, "ann", "region = 2, version = 1, state = 'here'").await;
    let moved = relocate(&world, AP, "ann", EU).await.expect(200);
    assert_eq!((&moved["region"], &moved["version"]), (&json!(1), &json!(3)));

    // Two moves away: the home on record names the second region, and the second region names the third home.
    play(&world, US, "bob", "tv").await.expect(201);
    world.client(AP, "bob").get("/api/v1/devices/sessions").await.expect(200);
    rewrite_home(&world, US, "bob", "region = 3, version = 2, state = 'moved', seq = 0").await;
    rewrite_home(&world, AP, "bob", "region = 2, version = 3, state = 'here'").await;
    tell_anchor(&world, AP, "bob", (AP, 4)).await.expect(409);
    for (told, status) in [((US, 3), 200), ((US, 3), 200), ((AP, 2), 200), ((AP, 3), 409), ((AP, 4), 409)] {
        let answer = tell_anchor(&world, AP, "bob", told).await.expect(status);
        if status == 200 {
            assert_eq!((&answer["region"], &answer["version"]), (&json!(2), &json!(3)), "{told:?}");
        }
    }
    assert_eq!(recorded(&world, EU, "bob").await.version, 3);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_counts_once_the_home_on_record_answers() {
    let world = World::start().await;
    let held = play(&world, US, "ann", "tv").await.expect(201)["session_id"].clone();
    relocate(&world, US, "ann", AP).await.expect(200);
    rewrite_home(&world, EU, "ann", "region = 2, version = 1, state = 'here'").await;
    world.set_around(US, Network::Cut);
    assert_eq!(
        tell_anchor(&world, AP, "ann", (AP, 2)).await.expect(503)["type"],
        "/problems/region-unavailable"
    );
    assert_eq!(relocate(&world, AP, "ann", EU).await.status, 503);
    assert_eq!(beat(&world, AP, "ann", &held).await, 204);
    world.set_around(US, Network::Well);
    relocate(&world, AP, "ann", EU).await.expect(200);
    assert_eq!(beat(&world, AP, "ann", &held).await, 204);
    world.close().await;
}

/// The id of a session leads a heartbeat to a region that is not the home on record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_region_of_a_session_id_moves_no_home() {
    let world = World::start().await;
    play(&world, US, "ann", "tv").await.expect(201);
    world.client(AP, "ann").get("/api/v1/devices/sessions").await.expect(200);
    let foreign = play(&world, AP, "bob", "tv").await.expect(201)["session_id"].clone();
    rewrite_home(&world, AP, "ann", "version = 9").await;
    world.stop_region(AP).await;
    world.start_region(AP).await;
    assert_ne!(beat(&world, EU, "ann", &foreign).await, 204);
    assert_eq!(recorded(&world, EU, "ann").await.version, Home::FIRST_VERSION);
    world.close().await;
}

/// The home on record is lost, and its successor confirms in its place.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_successor_of_a_lost_home_confirms_its_moves() {
    let mut world = crate::adoption::world().await;
    let held = play(&world, US, "ann", "tv").await.expect(201)["session_id"].clone();
    world.back_up(US).await;
    world.lose(US).await;
    // Nobody takes over the home of a lost region without the adoption.
    tell_anchor(&world, AP, "ann", (AP, 2)).await.expect(503);
    adopt(&world.settings[US], NAMES[US], NAMES[AP]).await.unwrap().counts.expect("a first adoption");
    assert_eq!(recorded(&world, EU, "ann").await.version, Home::FIRST_VERSION);
    let admits_from = admits_from_millis(&world, AP, US).await;
    let began = Instant::now();
    while now_millis() <= admits_from + 500 {
        assert_eq!(beat(&world, EU, "ann", &held).await, 204);
        assert!(began.elapsed() < DEADLINE, "the silence does not end");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    let moved = relocate(&world, AP, "ann", EU).await.expect(200);
    assert_eq!((&moved["region"], &moved["version"]), (&json!(1), &json!(3)));
    assert_eq!(beat(&world, AP, "ann", &held).await, 204);
    world.close().await;
}
