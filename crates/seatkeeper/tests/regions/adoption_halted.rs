//! An adoption that stands still half way: the sessions that are taken over go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use reqwest::Method;
use seatkeeper_server::{AdoptError, Adopted, adopt};
use seatkeeper_testbed::proxy::Network;
use serde_json::Value;

use crate::adoption::{DEADLINE, acquire, admits_from_millis, beat, keep, now_millis, play, world_with};
use crate::world::{AP, EU, US, World};

/// The TTL of every session: many times the duration of a round of heartbeats on a busy machine.
const LONG_TTL_SECONDS: u64 = 16;

/// The sessions of the first license: more than one message of the adoption carries.
const MANY: u32 = 220;

/// The licenses behind the first license.
const FURTHER: usize = 6;

/// The most that the clock of a region may be behind the clock of the test.
const CLOCKS_APART_MILLIS: u64 = 100;

/// Requests of the test at the same time.
const AT_ONCE: usize = 16;

/// Acquires `count` seats of a license.
async fn acquire_all(world: &World, license: &Value, count: u32) -> Vec<Value> {
    let seats = stream::iter(0..count).map(async |number| {
        acquire(world, EU, license, &format!("m{number}")).await.expect(201)["session_id"].clone()
    });
    seats.buffer_unordered(AT_ONCE).collect().await
}

/// Sends a heartbeat of every session to the regions in turn, and returns the different answers.
async fn keep_all(world: &World, sessions: &[Value]) -> Vec<u16> {
    let beats = stream::iter(sessions.iter().enumerate())
        .map(async |(number, session)| keep(world, [US, AP][number % 2], session).await);
    let mut answers: Vec<u16> = beats.buffer_unordered(AT_ONCE).collect().await;
    answers.sort_unstable();
    answers.dedup();
    answers
}

/// Adopts the first region, and cuts the command off once the first license is taken over. The clients go on until the
/// command gives up.
async fn adopt_until_cut(world: &World, many: &[Value], screen: &Value) -> Result<Adopted, AdoptError> {
    let cut_and_keep = async {
        let began = Instant::now();
        while keep(world, AP, &many[0]).await != 200 {
            assert!(began.elapsed() < DEADLINE, "the license is not served during the adoption");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        world.set_around(EU, Network::Cut);
        loop {
            assert_eq!(keep_all(world, many).await, [200]);
            assert_eq!(beat(world, AP, "ann", screen).await, 204);
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    };
    tokio::select! {
        told = adopt(&world.settings[EU], "eu", "us") => told,
        never = cut_and_keep => never,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_go_on_while_an_adoption_stands_still() {
    let mut world = world_with([false; 3], LONG_TTL_SECONDS).await;
    let screen = play(&world, EU, "ann", "tv").await.expect(201)["session_id"].clone();
    let license = world.license(EU, MANY).await;
    let mut further = Vec::new();
    for _ in 0..FURTHER {
        let license = world.license(EU, 1).await;
        further.extend(acquire_all(&world, &license, 1).await);
    }
    let mut many = acquire_all(&world, &license, MANY).await;
    world.back_up(EU).await;
    world.lose(EU).await;

    // The command is cut off once the first license is taken over, with many steps before it, and gives up.
    world.set_around(EU, Network::AnswersLate(Duration::from_millis(400)));
    let cut_off = adopt_until_cut(&world, &many, &screen).await;
    assert!(matches!(&cut_off, Err(AdoptError::Unavailable { .. })), "{cut_off:?}");
    assert_eq!(keep_all(&world, &further).await, [503], "no step behind the first license was taken");

    // A session that ends in the meantime is over with its reason, before the adoption ends and afterwards.
    let over = many.pop().unwrap();
    let path = format!("/api/v1/licenses/sessions/{}", over.as_str().unwrap());
    assert_eq!(world.client(AP, "ann").send(Method::DELETE, &path, None).await.status, 204);
    for region in [US, AP] {
        assert_eq!(keep(&world, region, &over).await, 410);
    }

    let halted = Instant::now();
    while halted.elapsed() < Duration::from_secs(LONG_TTL_SECONDS + LONG_TTL_SECONDS / 4) {
        assert_eq!(keep_all(&world, &many).await, [200]);
        assert_eq!(beat(&world, AP, "ann", &screen).await, 204);
        let refused = acquire(&world, AP, &license, "late").await.expect(503);
        assert_eq!(refused["type"], "/problems/region-adopting");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }

    world.set_around(EU, Network::Well);
    let (is_resumed, resumed_millis) = (AtomicBool::new(false), now_millis());
    let resume = async {
        let adopted = adopt(&world.settings[EU], "eu", "us").await;
        is_resumed.store(true, Ordering::Relaxed);
        adopted
    };
    let clients = async {
        while !is_resumed.load(Ordering::Relaxed) {
            assert_eq!(keep_all(&world, &many).await, [200]);
            assert_eq!(beat(&world, AP, "ann", &screen).await, 204);
        }
    };
    let (resumed, ()) = tokio::join!(resume, clients);
    resumed.unwrap().counts.expect("an adoption that was not done");
    assert_eq!(keep_all(&world, &further).await, [200]);
    assert_eq!(keep_all(&world, &many).await, [200]);
    assert_eq!(keep(&world, AP, &over).await, 410);
    assert_eq!(beat(&world, US, "ann", &screen).await, 204);
    // The silence counts from the last begin.
    let silence = admits_from_millis(&world, US, EU).await.saturating_sub(resumed_millis);
    assert!(silence >= LONG_TTL_SECONDS * 1_000 - CLOCKS_APART_MILLIS, "{silence} ms");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adoption_goes_on_after_a_short_cut() {
    let mut world = world_with([false; 3], LONG_TTL_SECONDS).await;
    let screen = play(&world, EU, "ann", "tv").await.expect(201)["session_id"].clone();
    world.back_up(EU).await;
    world.lose(EU).await;
    world.set_around(EU, Network::Cut);
    let mend = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        world.set_around(EU, Network::Well);
    };
    let (adopted, ()) = tokio::join!(adopt(&world.settings[EU], "eu", "us"), mend);
    assert_eq!(adopted.unwrap().counts.expect("a first adoption").sessions, 1);
    assert_eq!(beat(&world, AP, "ann", &screen).await, 204);
    world.close().await;
}
