//! Restored ledgers that have forgotten moves and assignments of homes: the other regions tell them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

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
    let before = play(&world, EU, "ann", "tv").await.expect(201)["session_id"].clone();
    world.back_up(EU).await;
    relocate(&world, EU, "ann", US).await.expect(200);
    let after = play(&world, US, "ann", "phone").await.expect(201)["session_id"].clone();
    assert_eq!((region_of(&before), region_of(&after)), (1, 2));
    (world, [before, after])
}

/// Waits until the third device is denied in every region. Returns whether `eu` has admitted a device before.
async fn full_everywhere(world: &World) -> bool {
    let (began, mut has_admitted) = (Instant::now(), false);
    for region in [EU, US, AP] {
        loop {
            let answer = play(world, region, "ann", "tablet").await;
            match answer.status {
                403 => break,
                201 if region == EU => has_admitted = true,
                503 => {}
                _ => panic!("a third device in {}: {answer:?}", NAMES[region]),
            }
            assert!(began.elapsed() < DEADLINE, "no denial in {}: {answer:?}", NAMES[region]);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
    has_admitted
}

async fn gives_up_forgotten_homes(eu_shares: bool) {
    let (mut world, sessions) = moved_after_the_backup(eu_shares).await;
    world.lose(EU).await;
    world.start_region(EU).await;
    assert!(!full_everywhere(&world).await, "the restored region admitted");
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
    full_everywhere(&world).await;
    for session in &sessions {
        beats_everywhere(&world, "ann", session).await;
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restored_anchor_assigns_no_home_for_a_second_time() {
    let mut world = World::start().await;
    play(&world, EU, "ann", "tv").await.expect(201);
    world.back_up(EU).await;
    let first = play(&world, US, "bob", "tv").await.expect(201);
    assert_eq!(region_of(&first["session_id"]), 2);
    world.lose(EU).await;
    world.start_region(EU).await;
    let second = play(&world, AP, "bob", "phone").await.expect(201);
    assert_eq!(region_of(&second["session_id"]), 2, "the home stays");
    let listed = world.client(AP, "bob").get("/api/v1/devices/sessions").await.expect(200);
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(2), "{}", json!(listed));
    world.close().await;
}
