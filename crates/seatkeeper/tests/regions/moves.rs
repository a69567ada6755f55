//! Homes that move: sessions go on in the new home, and no instant shows more holders than seats.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rand::RngExt as _;
use reqwest::Method;
use seatkeeper_testbed::proxy::{Network, Proxy};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use crate::harness::{Answer, EventStream};
use crate::storm::{LIMIT, greatest, storm};
use crate::world::{AP, EU, NAMES, NOWHERE, US, World, lead_ledger_through, region_of, screen};

const DEVICES: &str = "/api/v1/devices/sessions";

/// The longest time for which a move closes a pool.
pub(crate) const CLOSED_MAX: Duration = Duration::from_secs(5);

/// The deadline of conditions that the job `moves` brings about.
const DEADLINE: Duration = Duration::from_secs(40);

pub(crate) async fn relocate(world: &World, by: usize, user: &str, to: usize) -> Answer {
    world.admin(by).post("/api/v1/admin/homes/moves", json!({ "user": user, "to": NAMES[to] })).await
}

async fn beat(world: &World, region: usize, user: &str, session: &Value) -> u16 {
    let beat = json!({ "session_id": session });
    world.client(region, user).post("/api/v1/devices/sessions/heartbeat", beat).await.status
}

/// Waits until a heartbeat of the session is answered with 204 in every region. Any answer but 503 before is a failure.
pub(crate) async fn beats_everywhere(world: &World, user: &str, session: &Value) {
    let began = Instant::now();
    for region in [EU, US, AP] {
        loop {
            match beat(world, region, user, session).await {
                204 => break,
                503 => assert!(began.elapsed() < DEADLINE, "no heartbeat in {}", NAMES[region]),
                status => panic!("a heartbeat in {} was answered with {status}", NAMES[region]),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_moves_with_its_sessions_and_its_plan() {
    let world = World::start().await;
    world.create_plan().await;
    world.subscribe(US, "ann").await;
    let mut held = Vec::new();
    for (region, device) in [(US, "tv"), (EU, "phone")] {
        let answer = world.client(region, "ann").post("/api/v1/devices/sessions", screen(device)).await;
        held.push(answer.expect(201)["session_id"].clone());
    }
    let moved = relocate(&world, EU, "ann", AP).await.expect(200);
    assert_eq!(
        (&moved["region"], &moved["version"], &moved["moving"]),
        (&json!(3), &json!(2), &json!(false))
    );
    for session in &held {
        assert_eq!(region_of(session), 2, "the ids stay");
        beats_everywhere(&world, "ann", session).await;
    }
    for region in [EU, US, AP] {
        let client = world.client(region, "ann");
        let listed = client.get("/api/v1/devices/sessions").await.expect(200);
        assert_eq!(listed["items"].as_array().unwrap().len(), 2, "{listed}");
        client.post("/api/v1/devices/sessions", screen("tablet")).await.expect(403);
    }
    let path = format!("/api/v1/devices/sessions/{}", held[0].as_str().unwrap());
    world.client(EU, "ann").delete(&path).await.expect(204);
    let next = world.client(US, "ann").post("/api/v1/devices/sessions", screen("tablet")).await.expect(201);
    assert_eq!(region_of(&next["session_id"]), 3);
    // A repeated move to the present home changes nothing. A session of the old home cannot return.
    relocate(&world, US, "ann", AP).await.expect(200);
    let refused = relocate(&world, AP, "ann", US).await;
    assert_eq!(refused.expect(409)["type"], "/problems/home-not-movable");
    beats_everywhere(&world, "ann", &held[1]).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_without_its_target_does_not_begin() {
    let world = World::start().await;
    let held = world.client(US, "ann").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    for unreachable in [AP, EU] {
        world.set_around(unreachable, Network::Cut);
        let answer = relocate(&world, US, "ann", AP).await;
        assert_eq!(answer.expect(503)["type"], "/problems/region-unavailable");
        world.set_around(unreachable, Network::Well);
        assert_eq!(beat(&world, US, "ann", &held["session_id"]).await, 204);
    }
    let unknown =
        world.admin(US).post("/api/v1/admin/homes/moves", json!({ "user": "ann", "to": "mars" })).await;
    unknown.expect(422);
    world.close().await;
}

/// The answers of the target are lost at every step in turn, so the target may have taken over or not.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_is_cut_off_is_carried_on() {
    let world = World::start().await;
    for round in 0..4 {
        let user = format!("user-{round}");
        let held = world.client(US, &user).post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
        let begun = relocate(&world, US, &user, AP);
        let cut = async {
            tokio::time::sleep(Duration::from_millis(10 * round)).await;
            world.set_around(AP, Network::SwallowsAnswers(1.0));
            tokio::time::sleep(Duration::from_millis(500)).await;
            world.set_around(AP, Network::Well);
        };
        let (answer, ()) = tokio::join!(begun, cut);
        assert!(matches!(answer.status, 200 | 202 | 503), "{:#}", answer.body);
        beats_everywhere(&world, &user, &held["session_id"]).await;
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_survives_a_restart_of_both_regions() {
    let world = World::start().await;
    let held = world.client(US, "ann").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    world.set_around(AP, Network::AnswersLate(Duration::from_millis(300)));
    // The request is given up in the course of the move: the stop of the region waits no longer than the pool is closed.
    let admin = world.admin(US);
    let begun = tokio::spawn(async move {
        admin.post("/api/v1/admin/homes/moves", json!({ "user": "ann", "to": "ap" })).await.status
    });
    let began = Instant::now();
    while beat(&world, US, "ann", &held["session_id"]).await == 204 {
        assert!(began.elapsed() < DEADLINE, "the pool never closed");
    }
    world.stop_region(AP).await;
    world.stop_region(US).await;
    drop(begun.await);
    world.set_around(AP, Network::Well);
    world.start_region(AP).await;
    world.start_region(US).await;
    beats_everywhere(&world, "ann", &held["session_id"]).await;
    let next = world.client(EU, "ann").post("/api/v1/devices/sessions", screen("phone")).await;
    assert_eq!(region_of(&next.expect(201)["session_id"]), 3);
    world.close().await;
}

/// Changes a home in the ledger of an embedded region behind the server's back, as another node would.
pub(crate) async fn rewrite_home(world: &World, region: usize, user: &str, change: &str) {
    let file = world.settings[region].ledger.data_dir.join("ledger.db");
    let mut database = SqliteConnectOptions::new().filename(file).connect().await.unwrap();
    let text = format!("UPDATE homes SET {change} WHERE user_id = $1");
    sqlx::query(AssertSqlSafe(text)).bind(user).execute(&mut database).await.unwrap();
    database.close().await.unwrap();
}

/// Moves a home from `us` to `ap`, and leaves `us` with the old home in its cache.
pub(crate) async fn move_unnoticed(world: &World, user: &str) {
    relocate(world, US, user, AP).await.expect(200);
    // The move has dropped the cached home, so the list caches the home that the ledger shows.
    rewrite_home(world, US, user, "region = 2, state = 'here'").await;
    world.client(US, user).get(DEVICES).await.expect(200);
    rewrite_home(world, US, user, "region = 3, state = 'moved'").await;
}

/// A node with a stale home in its cache opens no pool, because the ledger decides whether a pool opens.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_missed_a_move_opens_no_pool() {
    let world = World::start().await;
    let client = world.client(US, "ann");
    client.get("/api/v1/devices/sessions").await.expect(200);
    rewrite_home(&world, US, "ann", "region = 3, version = 2, state = 'moving', seq = 0").await;
    let refused = client.post("/api/v1/devices/sessions", screen("tv")).await;
    assert_eq!(refused.expect(503)["type"], "/problems/home-moving");
    world.close().await;
}

/// The target's plan loses a screen after the move began. The stalest session stays behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_has_begun_ends_though_the_target_has_too_few_screens() {
    let world = World::start().await;
    world.create_plan().await;
    world.subscribe(US, "ann").await;
    let mut held = Vec::new();
    for device in ["tv", "phone"] {
        let answer = world.client(US, "ann").post(DEVICES, screen(device)).await;
        held.push(answer.expect(201)["session_id"].clone());
    }
    assert_eq!(beat(&world, US, "ann", &held[1]).await, 204);
    let fewer = json!({ "device_limit": 1 });
    world.admin(AP).patch("/api/v1/admin/plans/pair", Some(fewer)).await.expect(200);
    rewrite_home(&world, US, "ann", "region = 3, version = 2, state = 'moving', seq = 0").await;
    let began = Instant::now();
    loop {
        let listed = world.client(AP, "ann").get(DEVICES).await;
        if listed.status == 200 && listed.body["items"].as_array().map(Vec::len) == Some(1) {
            break;
        }
        assert!(began.elapsed() < DEADLINE, "the move has not ended: {listed:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    beats_everywhere(&world, "ann", &held[1]).await;
    let stalest = beat(&world, AP, "ann", &held[0]).await;
    assert!([404, 410].contains(&stalest), "the stalest session is answered {stalest}");
    world.close().await;
}

/// A node that still believes that the home is here, while the pool is closed: nobody is denied or ended by the move.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_missed_a_move_says_of_no_session_that_it_is_over() {
    let world = World::start().await;
    let heartbeat = "/api/v1/devices/sessions/heartbeat";
    let claim = (Method::POST, DEVICES);
    let mut refusals = 0;
    for (user, (method, path), forwarded) in [
        ("ann", claim, 201),
        ("bob", (Method::POST, heartbeat), 204),
        ("cid", (Method::GET, DEVICES), 200),
        ("dee", (Method::DELETE, DEVICES), 204),
        ("eve", (Method::DELETE, "session"), 204),
    ] {
        let client = world.client(US, user);
        let held = client.post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
        move_unnoticed(&world, user).await;
        let body = match (&method, path) {
            (&Method::POST, DEVICES) => Some(screen("phone")),
            (&Method::POST, _) => Some(json!({ "session_id": held["session_id"] })),
            _ => None,
        };
        let of_session = format!("{DEVICES}/{}", held["session_id"].as_str().unwrap());
        let path = if path == "session" { of_session.as_str() } else { path };
        let refused = client.send(method.clone(), path, body.clone()).await;
        if refused.status == forwarded {
            // The node reads the changed homes once a second, and has just noticed.
            continue;
        }
        assert_eq!(refused.expect(503)["type"], "/problems/home-moving", "{user}: {method} {path}");
        refusals += 1;
        // The node has noticed, and forwards from now on.
        client.send(method, path, body).await.expect(forwarded);
    }
    assert!(refusals > 0, "the node noticed every move");
    world.close().await;
}

/// A stream at a node with a stale home is refused once, and the next stream is that of the new home. The node reads the
/// changed homes once a second, and may have just noticed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_at_a_node_that_missed_a_move_goes_on_in_the_new_home() {
    let world = World::start().await;
    let client = world.client(US, "ann");
    let held = client.post(DEVICES, screen("tv")).await.expect(201);
    move_unnoticed(&world, "ann").await;

    let events = format!("{DEVICES}/{}/events", held["session_id"].as_str().unwrap());
    let mut stream = match EventStream::open(&client, &events, None).await {
        Ok(stream) => stream,
        Err(refused) => {
            assert_eq!(refused.expect(503)["type"], "/problems/home-moving");
            EventStream::open(&client, &events, None).await.unwrap()
        }
    };
    world.client(AP, "ann").post(DEVICES, screen("phone")).await.expect(201);
    assert_eq!(stream.next().await.unwrap().name, "evicted");
    world.close().await;
}

/// The end of a session from before a move is told with its reason in every region: a device that reads 404 claims again, and
/// would take the screen back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ended_before_a_move_is_over_in_every_region() {
    let world = World::start().await;
    let client = world.client(US, "ann");
    let evicted = client.post(DEVICES, screen("tv")).await.expect(201)["session_id"].clone();
    let successor = client.post(DEVICES, screen("phone")).await.expect(201)["session_id"].clone();
    assert_eq!(beat(&world, US, "ann", &evicted).await, 410);
    relocate(&world, EU, "ann", AP).await.expect(200);
    for region in [US, EU, AP] {
        let client = world.client(region, "ann");
        let ask = json!({ "session_id": evicted });
        let over = client.post("/api/v1/devices/sessions/heartbeat", ask).await.expect(410);
        assert_eq!(over["reason"], "evicted", "{}", NAMES[region]);
        assert_eq!(beat(&world, region, "ann", &successor).await, 204, "{}", NAMES[region]);
        let events = format!("{DEVICES}/{}/events", evicted.as_str().unwrap());
        let mut stream = EventStream::open(&client, &events, None).await.expect("a stream");
        assert_eq!(stream.next().await.expect("the end").name, "evicted", "{}", NAMES[region]);
        // Another user learns nothing.
        assert_eq!(beat(&world, region, "bob", &evicted).await, 404, "{}", NAMES[region]);
    }
    world.close().await;
}

/// A move to one region does not pass for a move to another region at the same time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_is_done_has_its_own_target() {
    let world = World::start().await;
    for user in ["ann", "bob", "cid"] {
        world.client(US, user).post(DEVICES, screen("tv")).await.expect(201);
        let (to_eu, to_ap) = tokio::join!(relocate(&world, US, user, EU), relocate(&world, US, user, AP));
        let answers = [(to_eu, 1), (to_ap, 3)];
        assert!(answers.iter().any(|(answer, _)| answer.status == 200), "{answers:?}");
        for (answer, region) in &answers {
            assert!(answer.status != 200 || answer.body["region"] == json!(region), "{answers:?}");
        }
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_moves_between_a_region_with_redis_and_postgresql_and_an_embedded_region() {
    let world = World::start_with([true, false, false], |_| {}).await;
    for (from, to) in [(EU, US), (US, EU)] {
        let user = format!("from-{}", NAMES[from]);
        let held = world.client(from, &user).post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
        relocate(&world, AP, &user, to).await.expect(200);
        beats_everywhere(&world, &user, &held["session_id"]).await;
        let next =
            world.client(AP, &user).post("/api/v1/devices/sessions", screen("phone")).await.expect(201);
        assert_eq!(next["evicted_session_ids"], json!([held["session_id"]]));
        assert_eq!(usize::from(region_of(&next["session_id"])), to + 1);
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn moves_under_a_storm_never_exceed_a_limit() {
    let world = World::start().await;
    let moves = AtomicUsize::new(0);
    let observed = storm(&world, rand::random(), async |dice| {
        for user in ["user-0", "user-1", "user-2"] {
            tokio::time::sleep(Duration::from_millis(dice.random_range(100..400))).await;
            let answer = relocate(&world, dice.random_range(0..3), user, dice.random_range(0..3)).await;
            assert!(matches!(answer.status, 200 | 202 | 409 | 503), "{:#}", answer.body);
            moves.fetch_add(usize::from(answer.status == 200), Relaxed);
        }
    })
    .await;
    let moves = moves.into_inner();
    println!("{moves} moves");
    assert!(moves > 0, "no home moved");
    for (pool, holds) in &observed.holds {
        let most = greatest(holds);
        assert!(most <= LIMIT, "{most} holders of {pool}");
    }
    assert_eq!(observed.lost, 0, "a move ended a session");
    assert!(observed.closed < CLOSED_MAX, "a pool was closed for {:?}", observed.closed);
    let homes = observed.homes.values().map(BTreeSet::len).max();
    assert!(homes > Some(1), "no home moved");
    world.close().await;
}

/// An admin names a session of another user, in a region that has never seen the session, and at each region on its way.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_reaches_a_moved_session_of_another_user() {
    let world = World::start().await;
    for (region, user) in [EU, US, AP].into_iter().zip(["ann", "bob", "cid"]) {
        let held = world.client(US, user).post(DEVICES, screen("tv")).await.expect(201);
        relocate(&world, EU, user, AP).await.expect(200);
        // The admin is at home in a third region.
        world.admin(EU).get(DEVICES).await.expect(200);
        let path = format!("{DEVICES}/{}", held["session_id"].as_str().unwrap());
        world.admin(region).delete(&path).await.expect(204);
        assert_eq!(beat(&world, AP, user, &held["session_id"]).await, 410, "{}", NAMES[region]);
    }
    world.close().await;
}

/// The counts of one tenant are no other tenant's business.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_homes_of_another_tenant_are_not_counted() {
    let world = World::start().await;
    world.client(EU, "ann").post(DEVICES, screen("tv")).await.expect(201);
    let homes = async |tenant: &str| {
        let regions = world.admin_of(EU, tenant).get("/api/v1/admin/regions").await.expect(200);
        regions["items"][0]["homes"].clone()
    };
    assert_eq!((homes("acme").await, homes("globex").await), (json!(1), json!(0)));
    world.close().await;
}

/// The ledger of `ap` is silent, so each heartbeat that reads a home would wait for at least 250 ms.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_heartbeat_reads_the_ledger_after_the_move_of_another_home() {
    let ledger = Proxy::start(NOWHERE, 1).await;
    let world =
        World::start_with([false, false, true], |settings| lead_ledger_through(&ledger, settings)).await;
    let mut held = Vec::new();
    for number in 0..20 {
        for home in [US, AP] {
            let user = format!("user-{home}-{number}");
            let claimed = world.client(home, &user).post(DEVICES, screen("tv")).await.expect(201);
            held.push((user, claimed["session_id"].clone()));
        }
    }
    let moved = held[0].clone();
    relocate(&world, US, &moved.0, AP).await.expect(200);

    ledger.set(Network::Silent);
    let began = Instant::now();
    for _ in 0..2 {
        for (user, session) in &held {
            assert_eq!(beat(&world, AP, user, session).await, 204, "{user}");
        }
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    ledger.set(Network::Well);
    beats_everywhere(&world, &moved.0, &moved.1).await;
    world.close().await;
}
