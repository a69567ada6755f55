//! Ended sessions of homes that have moved several times: a former home tells the end, however far the home has moved on. A
//! device that reads 404 claims again, and would take the screen back.

use std::time::{Duration, Instant};

use seatkeeper_testbed::proxy::Network;
use serde_json::{Value, json};

use crate::adoption::{beat, play};
use crate::harness::EventStream;
use crate::moves::relocate;
use crate::world::{AP, EU, NAMES, US, World};

const DEVICES: &str = "/api/v1/devices/sessions";

/// Longer than a closed pool stays in memory.
const DEADLINE: Duration = Duration::from_secs(90);

/// Begins a session of `ann` in `us`, moves the home to `ap`, and lets a second device evict the session there. Returns the
/// evicted session and the session of the second device.
async fn evict_in_ap(world: &World) -> (Value, Value) {
    let evicted = play(world, US, "ann", "tv").await.expect(201)["session_id"].clone();
    relocate(world, US, "ann", AP).await.expect(200);
    assert_eq!(beat(world, AP, "ann", &evicted).await, 204);
    let successor = play(world, AP, "ann", "phone").await.expect(201)["session_id"].clone();
    (evicted, successor)
}

/// Returns the reason of a session's end, as a heartbeat in a region hears the reason.
async fn reason(world: &World, region: usize, session: &Value) -> Value {
    let beat = json!({ "session_id": session });
    let over = world.client(region, "ann").post(&format!("{DEVICES}/heartbeat"), beat).await;
    over.expect(410)["reason"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ended_between_two_moves_is_over_in_every_region() {
    let world = World::start().await;
    let (evicted, successor) = evict_in_ap(&world).await;
    relocate(&world, AP, "ann", EU).await.expect(200);
    let events = format!("{DEVICES}/{}/events", evicted.as_str().unwrap());
    for region in [EU, US, AP] {
        assert_eq!(reason(&world, region, &evicted).await, "evicted", "{}", NAMES[region]);
        assert_eq!(beat(&world, region, "ann", &successor).await, 204, "{}", NAMES[region]);
        let client = world.client(region, "ann");
        let mut stream = EventStream::open(&client, &events, None).await.expect("a stream");
        assert_eq!(stream.next().await.expect("the end").name, "evicted", "{}", NAMES[region]);
        // Another user learns nothing.
        assert_eq!(beat(&world, region, "bob", &evicted).await, 404, "{}", NAMES[region]);
    }
    world.close().await;
}

/// While the region with the end on record does not answer, nobody hears that the session never was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_on_record_in_an_unreachable_region_is_not_answered_with_404() {
    let world = World::start().await;
    let (evicted, successor) = evict_in_ap(&world).await;
    relocate(&world, AP, "ann", EU).await.expect(200);
    for region in [EU, US] {
        // From now on, the region knows the new home without `ap`.
        assert_eq!(beat(&world, region, "ann", &successor).await, 204, "{}", NAMES[region]);
    }
    world.set_around(AP, Network::Cut);
    for region in [EU, US] {
        assert_eq!(beat(&world, region, "ann", &evicted).await, 503, "{}", NAMES[region]);
        assert_eq!(beat(&world, region, "ann", &successor).await, 204, "{}", NAMES[region]);
    }
    world.set_around(AP, Network::Well);
    assert_eq!(reason(&world, EU, &evicted).await, "evicted");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ended_elsewhere_is_over_when_its_home_is_back() {
    let world = World::start().await;
    let (evicted, successor) = evict_in_ap(&world).await;
    // The closed pool is forgotten at once, so the home may come back.
    world.stop_region(US).await;
    world.start_region(US).await;
    let began = Instant::now();
    loop {
        let moved = relocate(&world, AP, "ann", US).await;
        if moved.status == 200 {
            break;
        }
        assert!(began.elapsed() < DEADLINE, "the home does not come back: {moved:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for region in [US, EU, AP] {
        assert_eq!(reason(&world, region, &evicted).await, "evicted", "{}", NAMES[region]);
        assert_eq!(beat(&world, region, "ann", &successor).await, 204, "{}", NAMES[region]);
    }
    // Without the region that knows the reason, the session is over as well.
    world.set_around(AP, Network::Cut);
    for region in [US, EU] {
        assert_eq!(reason(&world, region, &evicted).await, "moved", "{}", NAMES[region]);
    }
    world.set_around(AP, Network::Well);
    world.close().await;
}
