//! `region.when_home_down = "allow"`: while the home of a subscriber cannot be connected to, each node admits devices by its
//! own memory.

use std::path::Path;
use std::time::{Duration, Instant};

use seatkeeper_server::{HeartbeatForwarding, Settings, WhenHomeDown};
use seatkeeper_testbed::port;
use seatkeeper_testbed::proxy::Network;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

use crate::harness::{Answer, Client, run};
use crate::moves::{relocate, rewrite_home};
use crate::processes::{DEADLINE, Processes, recorded};
use crate::world::{AP, EU, US, World, region_of, screen};

const DEVICES: &str = "/api/v1/devices/sessions";

const ALLOW: &str = "when_home_down = \"allow\"\n";

/// A test polls faster than the rate limits let pass.
const UNLIMITED: &str = "[limits]\ndevices_heartbeats_per_minute = 0\ndevices_acquires_per_minute = 0\n";

async fn beat(client: &Client, session: &Value) -> Answer {
    client.post(&format!("{DEVICES}/heartbeat"), json!({ "session_id": session })).await
}

fn path(session: &Value) -> String {
    format!("{DEVICES}/{}", session.as_str().expect("a session id"))
}

/// Takes a screen in region `ap`, in place of the home. The first claim after the end of the home may go over a connection
/// from before, so the claim may have reached the home, and is repeated.
async fn alone(client: &Client, device: &str) -> Value {
    alone_in(3, client, device).await
}

async fn alone_in(region: u8, client: &Client, device: &str) -> Value {
    let began = Instant::now();
    loop {
        let answer = client.post(DEVICES, screen(device)).await;
        if answer.status != 503 || began.elapsed() > DEADLINE {
            let admitted = answer.expect(201);
            assert_eq!(region_of(&admitted["session_id"]), region, "{admitted}");
            return admitted;
        }
    }
}

fn is_unavailable(answer: Answer) {
    assert_eq!(answer.expect(503)["type"], "/problems/region-unavailable");
}

/// Waits for the first answer to a heartbeat beside 204, and checks the end of the session.
async fn is_over(client: &Client, session: &Value) {
    let began = Instant::now();
    loop {
        let answer = beat(client, session).await;
        if answer.status != 204 {
            assert_eq!(answer.expect(410)["reason"], "expired");
            return;
        }
        assert!(began.elapsed() < DEADLINE, "the session lives on");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Creates a plan in `us`, and subscribes a user at home in `us`.
async fn subscribe(regions: &Processes, user: &str, limit: u32, when_full: &str) {
    let (admin, plan) = (regions.admin(US), format!("plan-of-{user}"));
    let ask = json!({ "name": plan, "device_limit": limit, "price_cents": 0, "when_full": when_full });
    admin.post("/api/v1/admin/plans", ask).await.expect(201);
    admin.post("/api/v1/admin/subscriptions", json!({ "user": user, "plan": plan })).await.expect(201);
}

/// Forges the limit of the lone admissions in `ap`, and checks that the proof of all regions finds the forgery: the plan of
/// the home never granted three screens.
async fn find_forged_limit(dir: &Path) {
    let data = |region: &str| dir.join(format!("data-{region}"));
    let mut database =
        SqliteConnectOptions::new().filename(data("ap").join("ledger.db")).connect().await.unwrap();
    let forge = "DROP TRIGGER audit_log_is_append_only;
                 UPDATE audit_log SET limit_seats = 3 WHERE action = 'admitted_alone'";
    database.execute(forge).await.unwrap();
    database.close().await.unwrap();
    let ledgers = [(1, "eu"), (2, "us"), (3, "ap")];
    let ledgers = ledgers.map(|(number, region)| format!("{number}={}", data(region).display()));
    let proof = run(&["audit", "verify", "--regions", &ledgers[0], &ledgers[1], &ledgers[2]]);
    assert!(proof.stdout.contains("which no region has granted"), "{}{}", proof.stdout, proof.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_region_admits_up_to_the_limit_alone_and_its_sessions_are_over_when_the_home_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut regions = Processes::start(dir.path(), ALLOW, UNLIMITED);
    subscribe(&regions, "ann", 2, "deny").await;
    let ann = regions.client(AP, "ann");
    let answer = ann.post(DEVICES, screen("tv")).await;
    assert!(answer.headers.get("seatkeeper-region-terms").is_none(), "the terms are for regions alone");
    let at_home = answer.expect(201)["session_id"].clone();
    assert_eq!(region_of(&at_home), 2);
    recorded(&regions.admin(US), "ann").await;
    let in_eu = regions.client(EU, "ann");
    in_eu.get(DEVICES).await.expect(200);
    regions.kill(US);

    let phone = alone(&ann, "phone").await;
    let tablet = alone(&ann, "tablet").await;
    assert_eq!((&tablet["device_limit"], &tablet["devices_in_use"]), (&json!(2), &json!(2)));
    let full = ann.post(DEVICES, screen("laptop")).await.expect(403);
    assert_eq!(full["sessions"].as_array().unwrap().len(), 2, "{full}");
    let again = alone(&ann, "phone").await;
    assert_eq!(again["devices_in_use"], 2, "a device takes over its own seat");
    assert_eq!(beat(&ann, &phone["session_id"]).await.expect(410)["reason"], "superseded");
    // `eu` has heard no terms of the home.
    let tv = alone_in(1, &in_eu, "tv").await;
    assert_eq!(tv["device_limit"], 1);
    in_eu.post(DEVICES, screen("laptop")).await.expect(403);

    let (phone, tablet) = (&again["session_id"], &tablet["session_id"]);
    for client in [&ann, &in_eu] {
        for session in [phone, tablet] {
            beat(client, session).await.expect(204);
        }
    }
    assert_eq!(ann.get(DEVICES).await.expect(200)["items"].as_array().unwrap().len(), 2);
    beat(&regions.client(AP, "bob"), phone).await.expect(404);
    for answer in [beat(&ann, &at_home).await, ann.delete(DEVICES).await, ann.delete(&path(&at_home)).await] {
        is_unavailable(answer);
    }
    is_unavailable(ann.get(&format!("{}/events", path(phone))).await);

    regions.start_region(US);
    is_over(&ann, phone).await;
    is_over(&ann, tablet).await;
    is_over(&in_eu, &tv["session_id"]).await;
    beat(&ann, phone).await.expect(410);
    beat(&ann, &at_home).await.expect(204);
    let home = ann.post(DEVICES, screen("phone")).await.expect(201);
    assert_eq!((region_of(&home["session_id"]), &home["devices_in_use"]), (2, &json!(2)));
    let told = regions.close();
    assert!(told.contains("4 admissions by nodes alone"), "{told}");
    find_forged_limit(dir.path()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_plan_evicts_alone_and_a_session_that_ended_alone_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let mut regions = Processes::start(dir.path(), ALLOW, UNLIMITED);
    subscribe(&regions, "eve", 1, "evict").await;
    let eve = regions.client(AP, "eve");
    eve.post(DEVICES, screen("tv")).await.expect(201);
    regions.kill(US);
    let first = alone(&eve, "phone").await;
    let second = alone(&eve, "tablet").await;
    assert_eq!(second["evicted_session_ids"], json!([first["session_id"]]));
    assert_eq!(beat(&eve, &first["session_id"]).await.expect(410)["reason"], "evicted");
    eve.delete(&path(&second["session_id"])).await.expect(204);
    assert_eq!(beat(&eve, &second["session_id"]).await.expect(410)["reason"], "revoked");
    let third = alone(&eve, "laptop").await;
    let code = json!({ "session_id": third["session_id"], "release_code": third["release_code"] });
    eve.post(&format!("{DEVICES}/release"), code).await.expect(204);
    assert_eq!(beat(&eve, &third["session_id"]).await.expect(410)["reason"], "released");
    let fourth = alone(&eve, "laptop").await;
    regions.admin(AP).delete(&path(&fourth["session_id"])).await.expect(204);
    regions.start_region(US);
    drop(regions.close());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn licenses_groups_and_unknown_homes_stay_denied() {
    let dir = tempfile::tempdir().unwrap();
    let mut regions = Processes::start(dir.path(), ALLOW, UNLIMITED);
    let license =
        regions.admin(EU).post("/api/v1/admin/licenses", json!({ "max_seats": 1 })).await.expect(201);
    let ann = regions.client(AP, "ann");
    regions.client(EU, "ann").post(DEVICES, screen("tv")).await.expect(201);
    ann.get(DEVICES).await.expect(200);
    regions.kill(EU);
    is_unavailable(ann.acquire(&license["license_key"], "machine").await);
    let session = alone(&ann, "phone").await["session_id"].clone();
    is_unavailable(ann.post("/api/v1/devices/groups", json!({ "session_id": session })).await);
    // The anchor would have to tell the home of a subscriber whom `ap` has never seen.
    is_unavailable(regions.client(AP, "bob").post(DEVICES, screen("tv")).await);
    drop(regions.close());
}

/// Another node of the region has no memory of the session either.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_memory_of_a_session_answers_503_until_the_home_is_back() {
    let dir = tempfile::tempdir().unwrap();
    let mut regions = Processes::start(dir.path(), ALLOW, UNLIMITED);
    regions.client(US, "ann").post(DEVICES, screen("tv")).await.expect(201);
    regions.client(AP, "ann").get(DEVICES).await.expect(200);
    regions.kill(US);
    let session = alone(&regions.client(AP, "ann"), "phone").await["session_id"].clone();
    regions.kill(AP);
    regions.start_region(AP);
    let ann = regions.client(AP, "ann");
    is_unavailable(beat(&ann, &session).await);
    is_unavailable(ann.delete(&path(&session)).await);
    is_unavailable(ann.get(DEVICES).await);
    is_unavailable(ann.get(&format!("{}/events", path(&session))).await);
    alone(&ann, "phone").await;
    is_unavailable(beat(&ann, &session).await);
    regions.start_region(US);
    let began = Instant::now();
    loop {
        let answer = beat(&ann, &session).await;
        if answer.status != 503 {
            assert_eq!(answer.expect(410)["reason"], "expired");
            break;
        }
        assert!(began.elapsed() < DEADLINE);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    drop(regions.close());
}

fn allow(settings: &mut Settings) {
    settings.region.when_home_down = WhenHomeDown::Allow;
}

/// A claim that the home may have got is denied: the home may have admitted the device.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_that_may_have_reached_the_home_is_denied() {
    let world = World::start_with([false; 3], allow).await;
    world.client(US, "ann").post(DEVICES, screen("tv")).await.expect(201);
    let ann = world.client(AP, "ann");
    for network in [Network::Silent, Network::AnswersWait, Network::SwallowsAnswers(1.0), Network::Cut] {
        world.set_around(US, network);
        is_unavailable(ann.post(DEVICES, screen("phone")).await);
        world.set_around(US, Network::Well);
    }
    ann.post(DEVICES, screen("phone")).await.expect(201);
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_on_its_way_is_denied_everywhere() {
    let world = World::start_with([false; 3], direct()).await;
    for region in [US, EU, AP] {
        world.client(region, "ann").get(DEVICES).await.expect(200);
    }
    rewrite_home(&world, US, "ann", "region = 3, version = 2, state = 'moving', seq = 0").await;
    for region in [EU, US, AP] {
        let refused = world.client(region, "ann").post(DEVICES, screen("tv")).await;
        assert_eq!(refused.expect(503)["type"], "/problems/home-moving");
    }
    let world = world;
    world.stop_region(AP).await;
    let refused = world.client(US, "ann").post(DEVICES, screen("tv")).await;
    assert_eq!(refused.expect(503)["type"], "/problems/home-moving");
    rewrite_home(&world, US, "ann", "region = 2, version = 1, state = 'here', seq = NULL").await;
    world.close().await;
}

/// Returns settings with `allow`, whose peers are reached without a proxy: a stopped region refuses connections.
fn direct() -> impl Fn(&mut Settings) {
    direct_at([port::free(), port::free(), port::free()])
}

fn direct_at(ports: [u16; 3]) -> impl Fn(&mut Settings) {
    move |settings| {
        allow(settings);
        let address = |number: u8| format!("127.0.0.1:{}", ports[usize::from(number) - 1]);
        settings.server.listen = address(settings.region.number).parse().unwrap();
        for peer in &mut settings.region.peers {
            peer.url = format!("http://{}", address(peer.number));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_that_moved_unnoticed_is_found_at_the_anchor_before_a_node_admits_alone() {
    let world = World::start_with([false; 3], direct()).await;
    world.client(US, "ann").post(DEVICES, screen("tv")).await.expect(201);
    let ann = world.client(AP, "ann");
    ann.get(DEVICES).await.expect(200);
    relocate(&world, US, "ann", EU).await.expect(200);
    world.stop_region(US).await;
    let admitted = ann.post(DEVICES, screen("phone")).await.expect(201);
    assert_eq!(region_of(&admitted["session_id"]), 1);
    world.close().await;
}

/// The first attempt to connect fails at a home that lives. The anchor is silent meanwhile, so the node waits for a probe
/// of the anchor between the attempt and the probe of the home.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_home_that_answers_a_probe_is_not_replaced() {
    // A bound socket refuses connections until it listens.
    let gate = TcpSocket::new_v4().unwrap();
    gate.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let (ports, gate_address) = ([port::free(), port::free(), port::free()], gate.local_addr().unwrap());
    let gated = |settings: &mut Settings| {
        let anchor = settings.region.peers.iter().find(|peer| peer.number == 1).map(|peer| peer.url.clone());
        direct_at(ports)(settings);
        if settings.region.number == 3 {
            settings.region.peers[EU].url = anchor.unwrap();
            settings.region.peers[US].url = format!("http://{gate_address}");
        }
    };
    let world = World::start_with([false; 3], gated).await;
    world.client(US, "ann").post(DEVICES, screen("tv")).await.expect(201);
    let ann = world.client(AP, "ann");
    // The gate is closed, so the list learns the home from the anchor and does not reach it.
    is_unavailable(ann.get(DEVICES).await);
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    world.redirect(AP, EU, silent.local_addr().unwrap());
    let claim = tokio::spawn(async move { ann.post(DEVICES, screen("phone")).await });
    let _probe = silent.accept().await.unwrap();
    let open = gate.listen(16).unwrap();
    let opened = tokio::spawn(async move {
        loop {
            let (mut caller, _) = open.accept().await.unwrap();
            let mut home = TcpStream::connect(("127.0.0.1", ports[US])).await.unwrap();
            tokio::spawn(async move { tokio::io::copy_bidirectional(&mut caller, &mut home).await });
        }
    });
    is_unavailable(claim.await.unwrap());
    let admitted = world.client(AP, "ann").post(DEVICES, screen("phone")).await.expect(201);
    assert_eq!(region_of(&admitted["session_id"]), 2);
    opened.abort();
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_over_redis_and_postgresql_admit_alone_as_well() {
    let world = World::start_with([false, false, true], direct()).await;
    world.create_plan().await;
    world.subscribe(US, "ann").await;
    let ann = world.client(AP, "ann");
    ann.post(DEVICES, screen("tv")).await.expect(201);
    world.stop_region(US).await;
    let phone = alone(&ann, "phone").await["session_id"].clone();
    let tablet = alone(&ann, "tablet").await["session_id"].clone();
    ann.post(DEVICES, screen("laptop")).await.expect(403);
    let metrics = ann.http.get(format!("{}/metrics", world.url(AP))).send().await.unwrap();
    let metrics = metrics.text().await.unwrap();
    assert!(metrics.contains("region_admitted_alone_total 2\n"), "{metrics}");
    for session in [&phone, &tablet] {
        beat(&ann, session).await.expect(204);
    }
    ann.delete(&path(&tablet)).await.expect(204);
    assert_eq!(beat(&ann, &tablet).await.expect(410)["reason"], "revoked");
    world.start_region(US).await;
    is_over(&ann, &phone).await;
    let home = ann.post(DEVICES, screen("phone")).await.expect(201);
    assert_eq!(region_of(&home["session_id"]), 2);
    world.close().await;
}

/// A network that swallows packets gives no answer and no error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_home_holds_one_heartbeat_up_for_a_second_at_most() {
    let ports = [port::free(), port::free(), port::free()];
    let slow = |settings: &mut Settings| {
        direct_at(ports)(settings);
        settings.region.forward_timeout_milliseconds = 30_000;
    };
    let world = World::start_with([false; 3], slow).await;
    world.client(US, "ann").post(DEVICES, screen("tv")).await.expect(201);
    let ann = world.client(AP, "ann");
    ann.get(DEVICES).await.expect(200);
    world.stop_region(US).await;
    let session = alone(&ann, "phone").await["session_id"].clone();
    let silent = std::net::TcpListener::bind(("127.0.0.1", ports[US])).unwrap();
    let began = Instant::now();
    let beats = (0..50).map(|_| async { (beat(&ann, &session).await.expect(204), began.elapsed()).1 });
    let mut times = futures_util::future::join_all(beats).await;
    times.sort();
    assert!(times[48] < Duration::from_millis(900), "only the probe waits: {times:?}");
    assert!(
        times[49] < Duration::from_secs(5),
        "the probe ends before the time limit of forwarding: {times:?}"
    );
    drop(silent);
    world.start_region(US).await;
    is_over(&ann, &session).await;
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_device_is_admitted_alone_without_a_record() {
    let ports = [port::free(), port::free(), port::free()];
    let hasty = |settings: &mut Settings| {
        direct_at(ports)(settings);
        settings.ledger.commit_timeout_milliseconds = 500;
    };
    let world = World::start_with([false; 3], hasty).await;
    world.client(EU, "ann").post(DEVICES, screen("tv")).await.expect(201);
    let ann = world.client(AP, "ann");
    ann.get(DEVICES).await.expect(200);
    world.stop_region(EU).await;
    let file = world.settings[AP].ledger.data_dir.join("ledger.db");
    let mut locked = SqliteConnectOptions::new().filename(file).connect().await.unwrap();
    locked.execute("BEGIN IMMEDIATE").await.unwrap();
    for _ in 0..2 {
        let unrecorded = ann.post(DEVICES, screen("phone")).await.expect(503);
        assert_eq!(unrecorded["type"], "/problems/unavailable");
    }
    locked.execute("ROLLBACK").await.unwrap();
    locked.close().await.unwrap();
    alone(&ann, "phone").await;
    world.close().await;
}

/// A batch would renew the session without a question to the home.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_in_batches_end_a_lone_session_as_well() {
    let ports = [port::free(), port::free(), port::free()];
    let batched = |settings: &mut Settings| {
        direct_at(ports)(settings);
        settings.region.heartbeats = HeartbeatForwarding::Batched;
    };
    let world = World::start_with([false; 3], batched).await;
    world.client(US, "ann").post(DEVICES, screen("tv")).await.expect(201);
    let ann = world.client(AP, "ann");
    ann.get(DEVICES).await.expect(200);
    world.stop_region(US).await;
    let session = alone(&ann, "phone").await["session_id"].clone();
    let in_eu = world.client(EU, "ann");
    for _ in 0..3 {
        beat(&in_eu, &session).await.expect(204);
    }
    world.start_region(US).await;
    is_over(&in_eu, &session).await;
    world.close().await;
}
