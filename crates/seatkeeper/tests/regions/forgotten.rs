//! Restored ledgers without the latest moves and assignments of homes: the peers tell the homes.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::adoption::play;
use crate::moves::{beats_everywhere, relocate};
use crate::world::{AP, EU, NAMES, NOWHERE, US, World, region_of};

/// The deadline of conditions that the job `moves` brings about.
const DEADLINE: Duration = Duration::from_secs(40);

/// Starts three regions. Ann's home moves from `eu` to `us` after the backup of `eu`, with a session. Returns her two
/// sessions.
async fn moved_after_the_backup(eu_shares: bool) -> (World, [Value; 2]) {
    let mut world = World::start_with([eu_shares, false, false], |_| {}).await;
    world.create_plan().await;
    world.subscribe(EU, "ann").await;
    play(&world, EU, "ann", "tv").await.expect(201);
    world.back_up(EU).await;
    // The records of the move have greater numbers than the backup.
    let before = play(&world, EU, "ann", "tv").await.expect(201)["session_id"].clone();
    relocate(&world, EU, "ann", US).await.expect(200);
    let after = play(&world, US, "ann", "phone").await.expect(201)["session_id"].clone();
    assert_eq!((region_of(&before), region_of(&after)), (1, 2));
    (world, [before, after])
}

/// Waits until the third device is denied in every region.
async fn is_full_everywhere(world: &World) {
    let began = Instant::now();
    for region in [EU, US, AP] {
        loop {
            let answer = play(world, region, "ann", "tablet").await;
            match answer.status {
                403 => break,
                503 => assert!(began.elapsed() < DEADLINE, "no denial in {}: {answer:?}", NAMES[region]),
                _ => panic!("a third device in {}: {answer:?}", NAMES[region]),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Waits until `eu` lists both of Ann's sessions: its home is in `us` again.
async fn home_is_learnt(world: &World) {
    let began = Instant::now();
    loop {
        let listed = world.client(EU, "ann").get("/api/v1/devices/sessions").await;
        if listed.status == 200 && listed.body["items"].as_array().map(Vec::len) == Some(2) {
            return;
        }
        assert!(began.elapsed() < DEADLINE, "the home is forgotten: {listed:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn gives_up_forgotten_homes(eu_shares: bool) {
    let (mut world, sessions) = moved_after_the_backup(eu_shares).await;
    world.lose(EU).await;
    world.start_region(EU).await;
    is_full_everywhere(&world).await;
    for session in &sessions {
        beats_everywhere(&world, "ann", session).await;
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_region_gives_up_the_homes_that_have_moved_since() {
    gives_up_forgotten_homes(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_region_with_redis_gives_up_the_homes_that_have_moved_since() {
    gives_up_forgotten_homes(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_region_gives_up_forgotten_homes_once_their_region_answers() {
    let (mut world, sessions) = moved_after_the_backup(false).await;
    world.lose(EU).await;
    world.redirect(EU, US, NOWHERE);
    world.start_region(EU).await;
    world.redirect(EU, US, world.address(US));
    home_is_learnt(&world).await;
    is_full_everywhere(&world).await;
    for session in &sessions {
        beats_everywhere(&world, "ann", session).await;
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_anchor_assigns_no_home_for_a_second_time() {
    let mut world = World::start().await;
    world.create_plan().await;
    world.back_up(EU).await;
    world.subscribe(US, "bob").await;
    let first = play(&world, US, "bob", "tv").await.expect(201);
    assert_eq!(region_of(&first["session_id"]), 2);
    world.lose(EU).await;
    world.start_region(EU).await;
    let second = play(&world, AP, "bob", "phone").await.expect(201);
    assert_eq!(region_of(&second["session_id"]), 2, "the home stays");
    let listed = world.client(AP, "bob").get("/api/v1/devices/sessions").await.expect(200);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(2), "{listed}");
    world.close().await;
}
