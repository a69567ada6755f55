//! Heartbeats in batches: the home answers each, and no region says on its own that a session is live.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::{StatusCode, Uri};
use futures_util::future::join_all;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use reqwest::Method;
use seatkeeper_server::HeartbeatForwarding;
use seatkeeper_testbed::proxy::{Network, Proxy};
use serde_json::{Value, json};

use crate::harness::{Answer, Client, Scrape};
use crate::world::{AP, EU, NOWHERE, US, World, lead_ledger_through, screen};

const DEVICE_BEAT: &str = "/api/v1/devices/sessions/heartbeat";

/// Batches of 50 ms: the requests of a peer in a second, and one for a batch at once.
const BATCHES_PER_SECOND_MAX: f64 = 21.0;

/// The requests that another region has answered.
const FORWARDED: &str = r#"region_forwarded_total{outcome="answered"}"#;

async fn batched() -> World {
    batched_with([false; 3]).await
}

/// Starts regions that batch heartbeats. A region of `shares` has a Redis and a PostgreSQL of its own.
async fn batched_with(shares: [bool; 3]) -> World {
    World::start_with(shares, |settings| {
        settings.region.heartbeats = HeartbeatForwarding::Batched;
        settings.auth.leeway_seconds = 0;
    })
    .await
}

async fn beat(client: &Client, session: &Value) -> Answer {
    client.post(DEVICE_BEAT, json!({ "session_id": session["session_id"] })).await
}

/// Returns the number of heartbeats of a region that were renewed in batches.
async fn renewed(world: &World, region: usize) -> f64 {
    scraped(world, region, "region_heartbeat_lag_seconds_count").await
}

async fn scraped(world: &World, region: usize, series: &str) -> f64 {
    Scrape::fetch(&[world.url(region)]).await.value(series)
}

/// Returns a screen of `ann`, at home in `us`, after a heartbeat by `ap`, with which the home checked the token.
async fn screen_of_ann(world: &World) -> (Client, Value) {
    let screen = world.client(US, "ann").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    let away = world.client(AP, "ann");
    beat(&away, &screen).await.expect(204);
    assert_eq!(renewed(world, AP).await, 1.0);
    assert_eq!(scraped(world, AP, FORWARDED).await, 0.0, "no heartbeat is forwarded by itself");
    (away, screen)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batched_heartbeat_has_the_answer_of_a_forwarded_heartbeat() {
    let world = batched().await;
    let (away, screen) = screen_of_ann(&world).await;
    beat(&away, &screen).await.expect(204);
    let key = world.license(EU, 1).await;
    let seat = away.acquire(&key, "machine").await.expect(201);
    let told = format!("/api/v1/licenses/sessions/{}/heartbeat", seat["session_id"].as_str().unwrap());
    let forwarded = away.send(Method::PATCH, &told, Some(json!({ "idle_seconds": 1 }))).await;
    let batched = away.heartbeat(&seat["session_id"]).await;
    assert_eq!(renewed(&world, AP).await, 3.0);
    assert_eq!((forwarded.status, batched.status), (200, 200));
    assert_eq!(forwarded.headers["content-type"], batched.headers["content-type"]);
    let fields = |answer: &Answer| answer.body.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&forwarded), fields(&batched));
    assert!(forwarded.body["last_heartbeat_at"].as_str() <= batched.body["last_heartbeat_at"].as_str());
    assert_eq!(batched.body["session_id"], seat["session_id"]);
    let path = format!("/api/v1/licenses/sessions/{}/heartbeat", seat["session_id"].as_str().unwrap());
    away.send(Method::PUT, &path, Some(json!({}))).await.expect(200);
    assert_eq!(renewed(&world, AP).await, 4.0);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_end_at_home_is_told_with_its_reason_by_the_next_heartbeat() {
    let world = batched().await;
    let (away, screen) = screen_of_ann(&world).await;
    beat(&away, &screen).await.expect(204);
    // The phone takes the only screen.
    world.client(US, "ann").post("/api/v1/devices/sessions", crate::world::screen("phone")).await.expect(201);
    let ended = beat(&away, &screen).await.expect(410);
    assert_eq!((&ended["type"], &ended["reason"]), (&json!("/problems/session-ended"), &json!("evicted")));
    let key = world.license(EU, 1).await;
    let seat = away.acquire(&key, "machine").await.expect(201);
    for _ in 0..2 {
        away.heartbeat(&seat["session_id"]).await.expect(200);
    }
    let revoke = format!("/api/v1/licenses/sessions/{}", seat["session_id"].as_str().unwrap());
    world.client(EU, "ann").delete(&revoke).await.expect(204);
    assert_eq!(away.heartbeat(&seat["session_id"]).await.expect(410)["reason"], "released");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_does_not_own_the_session_never_hears_that_it_lives() {
    let world = batched().await;
    let (away, screen) = screen_of_ann(&world).await;
    beat(&away, &screen).await.expect(204);
    let batched = renewed(&world, AP).await;
    for _ in 0..2 {
        beat(&world.client(AP, "bob"), &screen).await.expect(404);
    }
    let before = scraped(&world, AP, FORWARDED).await;
    for region in [US, AP] {
        let nobody = Client::new(&world.url(region), "no token".to_owned());
        beat(&nobody, &screen).await.expect(401);
        let end = format!("/api/v1/devices/sessions/{}", screen["session_id"].as_str().unwrap());
        nobody.delete(&end).await.expect(401);
    }
    assert_eq!(scraped(&world, AP, FORWARDED).await, before, "a caller without a token causes a request");
    assert_eq!(renewed(&world, AP).await, batched);
    // The confirmed caller is batched as before. An admin's heartbeat is checked at home as well.
    beat(&away, &screen).await.expect(204);
    assert_eq!(renewed(&world, AP).await, batched + 1.0);
    beat(&world.admin(AP), &screen).await.expect(204);
    assert_eq!(renewed(&world, AP).await, batched + 2.0);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_token_is_checked_at_home_and_an_expired_token_is_refused() {
    let world = batched().await;
    let (_, screen) = screen_of_ann(&world).await;
    let brief = world.client_for(AP, "ann", "", Duration::from_secs(2));
    beat(&brief, &screen).await.expect(204);
    assert_eq!(renewed(&world, AP).await, 2.0);
    assert_eq!(scraped(&world, AP, FORWARDED).await, 0.0, "a new token goes in a batch");
    let deadline = Instant::now() + Duration::from_secs(20);
    while beat(&brief, &screen).await.status != 401 {
        assert!(Instant::now() < deadline, "an expired token is accepted");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_with_further_content_is_forwarded_by_itself() {
    let world = batched().await;
    let (away, screen) = screen_of_ann(&world).await;
    let told = json!({ "session_id": screen["session_id"], "offline_seconds": 7 });
    away.post(DEVICE_BEAT, told).await.expect(204);
    assert_eq!(scraped(&world, US, "session_offline_seconds_sum").await, 7.0);
    let wrong = json!({ "session_id": screen["session_id"], "idle_seconds": -1 });
    away.post(DEVICE_BEAT, wrong).await.expect(422);
    assert_eq!(renewed(&world, AP).await, 1.0);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_heartbeat_is_live_without_the_link_and_the_session_lives_when_the_link_is_back() {
    let world = batched().await;
    let (away, screen) = screen_of_ann(&world).await;
    for network in [Network::Cut, Network::Silent, Network::AnswersWait] {
        beat(&away, &screen).await.expect(204);
        world.set_around(US, network);
        let answer = beat(&away, &screen).await;
        assert_eq!(answer.expect(503)["type"], "/problems/region-unavailable");
        world.set_around(US, Network::Well);
        // A connection that waited in the network may be lost.
        let deadline = Instant::now() + Duration::from_secs(20);
        while beat(&away, &screen).await.status != 204 {
            assert!(Instant::now() < deadline, "the link is back, and heartbeats fail");
        }
    }
    let batches = scraped(&world, AP, r#"region_heartbeat_batches_total{outcome="unavailable"}"#).await;
    assert!(batches >= 3.0, "{batches} batches felt the cuts");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_without_the_token_of_a_peer_is_refused() {
    let world = batched().await;
    let screen = world.client(US, "ann").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    let heartbeat = json!([
        { "id": screen["session_id"], "kind": "subscriber", "tenant": "acme", "user": "ann" },
        { "id": screen["session_id"], "kind": "subscriber", "tenant": "acme", "user": "bob" },
        { "id": screen["session_id"], "kind": "license", "tenant": "acme", "user": "ann" },
        { "id": screen["session_id"], "kind": "capacity", "tenant": "acme", "user": "ann" },
    ]);
    let path = "/api/v1/regions/heartbeats";
    for client in [world.client(US, "ann"), world.admin(US)] {
        let answer = client.post(path, heartbeat.clone()).await;
        assert_eq!(answer.expect(421)["type"], "/problems/region-token-refused");
    }
    let for_another = world.region_token(AP, EU, None).await;
    world.send_with(US, "ann", &for_another, Method::POST, path, heartbeat.clone()).await.expect(421);
    // With the token, each caller reaches its own session alone.
    let token = world.region_token(AP, US, None).await;
    let answer = world.send_with(US, "ann", &token, Method::POST, path, heartbeat.clone()).await.expect(200);
    assert_eq!(answer["answers"], json!([{ "renewed": {} }, "not_renewed", "not_renewed", "not_renewed"]));
    // A bearer token that comes along decides, whomever the region names.
    let named = |token: &str| json!({ "id": screen["session_id"], "kind": "subscriber", "tenant": "acme", "user": "ann", "token": token });
    let [ann, bob] = ["ann", "bob"].map(|user| world.client(US, user).token);
    let with_tokens = json!([named(&ann), named(&bob), named("forged")]);
    let answer = world.send_with(US, "ann", &token, Method::POST, path, with_tokens).await.expect(200);
    assert_eq!(answer["answers"], json!([{ "renewed": {} }, "not_renewed", "not_renewed"]));
    // A region that is not the home renews nothing.
    let token = world.region_token(AP, EU, None).await;
    let answer = world.send_with(EU, "ann", &token, Method::POST, path, heartbeat).await.expect(200);
    assert_eq!(answer["answers"], json!(["not_renewed", "not_renewed", "not_renewed", "not_renewed"]));
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_limit_counts_batched_heartbeats_at_home() {
    let world = World::start_with([false; 3], |settings| {
        settings.region.heartbeats = HeartbeatForwarding::Batched;
        settings.limits.devices_heartbeats_per_minute = 6;
    })
    .await;
    let screen = world.client(US, "ann").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    let away = world.client(AP, "ann");
    let mut statuses = Vec::new();
    for _ in 0..8 {
        let answer = beat(&away, &screen).await;
        assert_eq!(answer.headers["ratelimit-limit"], "6");
        statuses.push(answer.status);
    }
    assert_eq!(statuses, [204, 204, 204, 204, 204, 204, 429, 429]);
    assert_eq!(renewed(&world, AP).await, 6.0);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_healthy_session_ends_and_few_requests_carry_the_heartbeats() {
    keep_seats(batched().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_healthy_session_ends_at_a_home_with_redis_and_postgresql() {
    keep_seats(batched_with([true, false, false]).await).await;
}

/// Keeps 100 seats with a TTL of 3 s for three TTLs, over a link with 40 ms.
async fn keep_seats(world: World) {
    let license = json!({ "max_seats": 100, "ttl_seconds": 3 });
    let license = world.admin(EU).post("/api/v1/admin/licenses", license).await.expect(201);
    world.set_all(Network::AnswersLate(Duration::from_millis(40)));
    let away = world.client(AP, "ann");
    let began = Instant::now();
    let mut seats = Vec::new();
    for machine in 0..100 {
        let (away, key) = (away.clone(), license["license_key"].clone());
        seats.push(tokio::spawn(async move {
            let seat = away.acquire(&key, &format!("m{machine}")).await.expect(201);
            let mut beats = 0;
            while began.elapsed() < Duration::from_secs(9) {
                away.heartbeat(&seat["session_id"]).await.expect(200);
                beats += 1;
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
            beats
        }));
    }
    let mut beats = 0;
    for seat in seats {
        beats += seat.await.unwrap();
    }
    let requests = scraped(&world, AP, r#"region_heartbeat_batches_total{outcome="answered"}"#).await;
    let most = (began.elapsed().as_secs_f64() + 1.0) * BATCHES_PER_SECOND_MAX;
    println!("{requests} requests for {beats} heartbeats in {:?}", began.elapsed());
    assert!(requests > 0.0 && requests <= most, "{requests} requests for {beats} heartbeats");
    assert_eq!(renewed(&world, AP).await, f64::from(beats));
    world.close().await;
}

/// Heartbeats of a session by another region, until the session is over there.
async fn beat_until_over(client: Client, session: Value, ended: Arc<Mutex<Option<Instant>>>) -> u32 {
    let mut live = 0;
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let sent = Instant::now();
        let answer = client.heartbeat(&session).await;
        let ended = *ended.lock().unwrap();
        match answer.status {
            200 => {
                assert!(
                    ended.is_none_or(|ended| sent < ended),
                    "live, {:?} after the end",
                    sent - ended.unwrap()
                );
                live += 1;
            }
            410 => {
                assert_eq!(answer.body["reason"], "released");
                return live;
            }
            503 => {}
            other => panic!("{other}: {:#}", answer.body),
        }
        assert!(sent < deadline, "the end is never told");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Ends sessions at home while other regions send their heartbeats over a network with faults.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_heartbeat_sent_after_an_end_at_home_is_live() {
    let world = batched().await;
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut dice = StdRng::seed_from_u64(seed);
    let key = world.license(EU, 40).await;
    let mut sessions = Vec::new();
    for machine in 0..40 {
        let away = world.client([US, AP][machine % 2], "ann");
        let session = away.acquire(&key, &machine.to_string()).await.expect(201)["session_id"].clone();
        let ended = Arc::new(Mutex::new(None));
        let beats = tokio::spawn(beat_until_over(away, session.clone(), Arc::clone(&ended)));
        sessions.push((session, ended, beats));
    }
    let home = world.client(EU, "ann");
    let networks = [Network::Cut, Network::Silent, Network::SwallowsAnswers(0.5), Network::RequestsWait];
    let mut live = 0;
    for (session, ended, beats) in sessions {
        world.set_all(networks[dice.random_range(0..networks.len())]);
        tokio::time::sleep(Duration::from_millis(dice.random_range(10..100))).await;
        home.release(&session).await.expect(204);
        *ended.lock().unwrap() = Some(Instant::now());
        tokio::time::sleep(Duration::from_millis(dice.random_range(10..100))).await;
        world.set_all(Network::Well);
        live += beats.await.unwrap();
    }
    assert!(live > 0 && renewed(&world, AP).await > 0.0, "no heartbeat was live");
    world.close().await;
}

/// The id of a moved session names the region in which the session began, and the batch goes to the present home.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_heartbeats_of_a_moved_session_go_in_batches() {
    let world = batched().await;
    let held = world.client(US, "ann").post("/api/v1/devices/sessions", screen("tv")).await.expect(201);
    let relocation = json!({ "user": "ann", "to": "ap" });
    world.admin(US).post("/api/v1/admin/homes/moves", relocation).await.expect(200);
    let away = world.client(EU, "ann");
    for _ in 0..3 {
        beat(&away, &held).await.expect(204);
    }
    assert!(renewed(&world, EU).await >= 2.0, "at most the first finds an older home");
    world.close().await;
}

/// A home that answers every request with 503, as a node whose lease has lapsed, and the paths of the requests.
async fn busy_home() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let paths = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&paths);
    let answers = Router::new().fallback(move |uri: Uri| {
        noted.lock().unwrap().push(uri.path().to_owned());
        std::future::ready((StatusCode::SERVICE_UNAVAILABLE, [("x-request-id", "r1")]))
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, answers).await });
    (address, paths)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_that_cannot_decide_now_gets_batches_alone() {
    let world = batched().await;
    let (away, screen) = screen_of_ann(&world).await;
    beat(&away, &screen).await.expect(204);
    let (busy, paths) = busy_home().await;
    world.redirect(AP, US, busy);
    let deadline = Instant::now() + Duration::from_secs(20);
    while paths.lock().unwrap().is_empty() {
        beat(&away, &screen).await.expect(503);
        assert!(Instant::now() < deadline, "no request arrives");
    }
    for answer in join_all((0..20).map(|_| beat(&away, &screen))).await {
        assert_eq!(answer.expect(503)["type"], "/problems/region-unavailable");
    }
    let single = |path: &String| path != "/api/v1/regions/heartbeats";
    let singles: Vec<_> = paths.lock().unwrap().iter().filter(|path| single(path)).cloned().collect();
    assert!(singles.is_empty(), "{singles:?}");
    // The caller is confirmed as before.
    let before = renewed(&world, AP).await;
    world.redirect(AP, US, world.address(US));
    while beat(&away, &screen).await.status != 204 {
        assert!(Instant::now() < deadline, "the home is back, and heartbeats fail");
    }
    assert_eq!(renewed(&world, AP).await, before + 1.0);
    world.close().await;
}

/// The home asks its ledger for the reason of an end, and the ledger is silent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_heartbeat_delays_the_others_of_its_batch_for_less_than_a_second() {
    let ledger = Proxy::start(NOWHERE, 1).await;
    let world = World::start_with([true, false, false], |settings| {
        settings.region.heartbeats = HeartbeatForwarding::Batched;
        lead_ledger_through(&ledger, settings);
    })
    .await;
    let (key, away) = (world.license(EU, 250).await, world.client(AP, "ann"));
    let mut seats = Vec::new();
    for machine in 0..250 {
        let seat = away.acquire(&key, &machine.to_string()).await.expect(201)["session_id"].clone();
        away.heartbeat(&seat).await.expect(200);
        seats.push(seat);
    }
    let ended = 100;
    world.client(EU, "ann").release(&seats[ended]).await.expect(204);
    ledger.set(Network::Silent);
    let answers = join_all(seats.iter().map(async |seat| {
        let asked = Instant::now();
        (away.heartbeat(seat).await.status, asked.elapsed())
    }));
    for (index, (status, elapsed)) in answers.await.into_iter().enumerate() {
        if index == ended {
            assert_eq!(status, 503, "the end of a session, without its reason");
        } else {
            assert_eq!(status, 200, "seat {index}");
            assert!(elapsed < Duration::from_secs(1), "seat {index}: {elapsed:?}");
        }
    }
    ledger.set(Network::Well);
    let deadline = Instant::now() + Duration::from_secs(30);
    while away.heartbeat(&seats[ended]).await.status != 410 {
        assert!(Instant::now() < deadline, "the end is never told");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    world.close().await;
}
