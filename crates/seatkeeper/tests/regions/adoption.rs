//! A region that is lost for good: another region adopts its pools from a restored ledger.

use std::path::Path;
use std::time::{Duration, Instant};

use reqwest::Method;
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::usage::UnbilledUsage;
use seatkeeper_ledger::verify::HomeMoveKind;
use seatkeeper_server::{AdoptError, StartError, adopt, start, wall_clock};
use serde_json::{Value, json};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tokio_util::sync::CancellationToken;

use crate::harness::Answer;
use crate::world::{AP, EU, NAMES, TENANT, US, World, region_of, screen, write_key_pair};

const DEVICES: &str = "/api/v1/devices/sessions";

const BEAT: &str = "/api/v1/devices/sessions/heartbeat";

/// The TTL of every session, so that the silence after an adoption ends within the test.
pub(crate) const TTL_SECONDS: u64 = 8;

/// A tenant whose anchor is the successor.
const ANCHORED_IN_US: &str = "globex";

pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) async fn world() -> World {
    world_with([false; 3], TTL_SECONDS).await
}

/// Starts three regions whose sessions have a TTL of `ttl_seconds`. A region of `shares` has a Redis and a PostgreSQL of its
/// own.
pub(crate) async fn world_with(shares: [bool; 3], ttl_seconds: u64) -> World {
    let world = World::start_with(shares, |settings| {
        settings.devices.ttl_seconds = ttl_seconds;
        settings.licenses.ttl_seconds = ttl_seconds;
        settings.region.anchors.insert(ANCHORED_IN_US.to_owned(), 2);
    })
    .await;
    world.create_plan().await;
    world
}

pub(crate) async fn play(world: &World, region: usize, user: &str, device: &str) -> Answer {
    world.client(region, user).post(DEVICES, screen(device)).await
}

pub(crate) async fn acquire(world: &World, region: usize, license: &Value, machine: &str) -> Answer {
    let ask = json!({ "license_key": license, "machine_id": machine });
    world.client(region, "ann").post("/api/v1/licenses/acquire", ask).await
}

/// Asserts that the adoption reads the restored ledger for an unknown home: the ledger has no event of the pool.
async fn unknown_home_is_read(world: &World, user: &str) {
    let ledger = Ledger::open_read_only(world.ledger(US)).await.unwrap();
    let moves = ledger.home_moves().await.unwrap();
    ledger.close().await;
    let moved = moves.iter().find(|moved| moved.subscriber.1.as_str() == user).unwrap();
    assert_eq!(moved.kind, HomeMoveKind::Adopted { peer_seq: Some(0) });
}

/// Sends a heartbeat of a license's session.
pub(crate) async fn keep(world: &World, region: usize, session: &Value) -> u16 {
    let path = format!("/api/v1/licenses/sessions/{}/heartbeat", session.as_str().unwrap());
    world.client(region, "ann").send(Method::PATCH, &path, None).await.status
}

/// Returns the time before which the successor admits nobody.
pub(crate) async fn admits_from_millis(world: &World, region: usize, lost: usize) -> u64 {
    let ledger = Ledger::open_read_only(world.ledger(region)).await.unwrap();
    let adoptions = ledger.adoptions().await.unwrap();
    let adoption = adoptions.iter().find(|known| usize::from(known.lost.number()) == lost + 1).unwrap();
    ledger.close().await;
    adoption.admits_from.as_millis()
}

pub(crate) fn now_millis() -> u64 {
    u64::try_from(wall_clock::now().timestamp_millis()).unwrap()
}

pub(crate) async fn beat(world: &World, region: usize, user: &str, session: &Value) -> u16 {
    world.client(region, user).post(BEAT, json!({ "session_id": session })).await.status
}

/// Waits for the end of the silence. Nobody is admitted to an adopted pool before the sessions that the backup lacks are
/// over, and the sessions on record go on.
async fn silence_ends(world: &World, admits_from: u64, license: &Value, (held, seat): (&Value, &Value)) {
    let began = Instant::now();
    loop {
        for region in [US, AP] {
            for (pool, answer) in [
                ("ann", play(world, region, "ann", "tablet").await),
                ("license", acquire(world, region, license, "m3").await),
                ("fred", play(world, region, "fred", "tablet").await),
                ("gus", play(world, region, "gus", "tablet").await),
            ] {
                match answer.status {
                    503 => assert_eq!(answer.body["type"], "/problems/region-adopting", "{pool}"),
                    200 | 201 => assert!(now_millis() >= admits_from, "{pool}: admitted too early"),
                    status => panic!("{pool}: {status} {:#}", answer.body),
                }
            }
        }
        assert_eq!(beat(world, AP, "ann", held).await, 204);
        assert_eq!(keep(world, AP, seat).await, 200);
        // A home that was never in the lost region, or has left it, is not silent.
        play(world, AP, "carl", "tv").await.expect(201);
        play(world, US, "dora", "tv").await.expect(201);
        if now_millis() > admits_from + 500 {
            break;
        }
        assert!(began.elapsed() < DEADLINE, "the silence does not end");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
}

/// Asserts that the tokens of the lost region are refused, and that no server starts on the restored ledger.
async fn lost_is_out(world: &World) {
    for region in [US, AP] {
        let token = world.region_token(EU, region, Some("192.0.2.1")).await;
        let refused = world.send_with(region, "ann", &token, Method::GET, DEVICES, json!({})).await;
        assert_eq!(refused.expect(421)["type"], "/problems/region-token-refused");
    }
    let started = start(world.settings[EU].clone(), CancellationToken::new()).await;
    assert!(matches!(started.err(), Some(StartError::Adopted { successor }) if successor.number() == 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_region_is_adopted_with_its_subscribers_and_licenses() {
    lost_region_is_adopted([false; 3]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_region_with_redis_and_postgresql_is_adopted_by_another() {
    lost_region_is_adopted([true, true, false]).await;
}

async fn lost_region_is_adopted(shares: [bool; 3]) {
    let mut world = world_with(shares, TTL_SECONDS).await;
    world.subscribe(EU, "ann").await;
    let held = play(&world, EU, "ann", "tv").await.expect(201)["session_id"].clone();
    let moved = play(&world, EU, "dora", "tv").await.expect(201)["session_id"].clone();
    play(&world, US, "carl", "tv").await.expect(201);
    let license = world.license(US, 2).await;
    let seat = acquire(&world, AP, &license, "m1").await.expect(201)["session_id"].clone();
    world.back_up(EU).await;
    // None of these is in the backup.
    let late = play(&world, AP, "ann", "phone").await.expect(201)["session_id"].clone();
    play(&world, EU, "fred", "tv").await.expect(201);
    play(&world, AP, "fred", "phone").await.expect(201);
    // No region but the lost region knows the home of this subscriber.
    play(&world, EU, "gus", "tv").await.expect(201);
    acquire(&world, EU, &license, "m2").await.expect(201);
    let relocation = json!({ "user": "dora", "to": "ap" });
    world.admin(EU).post("/api/v1/admin/homes/moves", relocation).await.expect(200);
    assert_eq!((region_of(&held), region_of(&seat)), (1, 1));

    world.lose(EU).await;
    let adopted = adopt(&world.settings[EU], "eu", "us").await.unwrap().counts.expect("a first adoption");
    assert_eq!((adopted.licenses, adopted.sessions), (1, 3), "{adopted:?}");
    unknown_home_is_read(&world, "fred").await;
    let admits_from = admits_from_millis(&world, US, EU).await;
    // A repetition changes nothing.
    assert_eq!(adopt(&world.settings[EU], "eu", "us").await.unwrap().counts, None);

    // The sessions on record go on by their old ids, in every region. A session that the backup lacks is over.
    for region in [US, AP] {
        for (user, session, wanted) in [("ann", &held, 204), ("ann", &late, 404), ("dora", &moved, 204)] {
            assert_eq!(beat(&world, region, user, session).await, wanted, "{user} in {}", NAMES[region]);
        }
        assert_eq!(keep(&world, region, &seat).await, 200, "{}", NAMES[region]);
    }
    let listed = world.client(AP, "ann").get(DEVICES).await.expect(200);
    assert_eq!(listed["items"].as_array().unwrap().len(), 1, "{listed}");
    let regions = world.admin(AP).get("/api/v1/admin/regions").await.expect(200);
    let eu = regions["items"].as_array().unwrap().iter().find(|region| region["name"] == "eu").unwrap();
    assert_eq!((&eu["adopted_by"], &eu["reachable"]), (&json!(2), &json!(false)));

    silence_ends(&world, admits_from, &license, (&held, &seat)).await;
    // From now on the sessions on record count, and the limits hold.
    play(&world, AP, "ann", "tablet").await.expect(201);
    play(&world, US, "ann", "watch").await.expect(403);
    acquire(&world, US, &license, "m3").await.expect(200);
    acquire(&world, AP, &license, "m4").await.expect(403);
    // The successor is the anchor of new subscribers and licenses.
    let eve = play(&world, AP, "eve", "tv").await.expect(201)["session_id"].clone();
    assert_eq!(region_of(&eve), 3);
    play(&world, US, "eve", "tv").await.expect(201);
    let other = world.license(AP, 1).await;
    let other = acquire(&world, US, &other, "m1").await.expect(201);
    assert_eq!(region_of(&other["session_id"]), 2);

    lost_is_out(&world).await;
    world.close().await;
}

/// Begins the adoption with the key of the lost region, and asserts that the key hands over licenses of no tenant whose anchor
/// is the successor.
async fn foreign_licenses_are_refused(world: &World) {
    let token = world.region_token(EU, US, None).await;
    let send = async |step: &str, body| {
        let path = format!("/api/v1/regions/adoptions/{step}");
        world.send_with(US, "ann", &token, Method::POST, &path, body).await
    };
    let begin = json!({ "successor": 2, "ttl_milliseconds": TTL_SECONDS * 1_000, "only_check": false });
    assert_eq!(send("begin", begin).await.expect(200)["is_done"], false);
    let sessions = |tenant| {
        let license = "01890a5d-ac96-774b-bcce-b302099a8057";
        json!({ "tenant": tenant, "license_id": license, "sessions": [], "is_last": true, "wait_milliseconds": 0 })
    };
    let refused = send("sessions", sessions(ANCHORED_IN_US)).await.expect(409);
    assert!(refused["detail"].as_str().unwrap().contains("anchor"), "{refused:#}");
    send("sessions", sessions(TENANT)).await.expect(404);
}

/// Puts a batch of usage that a sink has refused into the restored ledger, which is in `data_dir`.
pub(crate) async fn refuse_a_batch(data_dir: &Path) {
    let file = data_dir.join("ledger.db");
    let mut ledger = SqliteConnectOptions::new().filename(file).connect().await.unwrap();
    for statement in [
        "INSERT INTO usage_windows (starts_at, ends_at, records, micro_units)
         VALUES ('2030-01-31T00:00:00.000+00:00', '2030-01-31T00:01:00.000+00:00', 1, 23)",
        "INSERT INTO usage_outbox (id, window_starts_at, tenant_id, batch, records, micro_units, state, attempts,
                                   not_found, may_be_stored, next_attempt_at)
         VALUES (randomblob(16), '2030-01-31T00:00:00.000+00:00', 'acme', 1, 1, 23, 'dead', 1,
                 0, 0, '2030-01-31T00:01:00.000+00:00')",
    ] {
        sqlx::query(statement).execute(&mut ledger).await.unwrap();
    }
    ledger.close().await.unwrap();
}

/// The key of a lost region is replaced for the adoption, and its servers come back with the old key: no token of
/// theirs is valid, and they hear of the adoption all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_region_that_comes_back_with_an_old_key_does_not_start() {
    let mut world = world().await;
    play(&world, EU, "ann", "tv").await.expect(201);
    world.back_up(EU).await;
    let mut before = world.settings[EU].clone();
    world.lose(EU).await;
    adopt(&world.settings[EU], "eu", "us").await.unwrap().counts.expect("a first adoption");
    let old_key = world.key_file("eu-before");
    write_key_pair(old_key.parent().unwrap(), "eu-before");
    before.region.key_file = Some(old_key);
    match start(before, CancellationToken::new()).await {
        Err(StartError::NumberTaken { own, .. }) => assert_eq!(own.number(), 1),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("the lost region has started"),
    }
    // A region that is not lost hears only that its token is not valid.
    let forged = world.region_token_ahead(600, AP, US);
    let path = "/api/v1/regions/deployments";
    let refused = world.send_with(US, "ann", &forged, Method::POST, path, json!({})).await;
    assert_eq!(refused.expect(421)["type"], "/problems/region-token-refused");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adoption_with_a_contradiction_is_refused() {
    let mut world = world().await;
    play(&world, EU, "ann", "tv").await.expect(201);
    world.back_up(EU).await;
    let running = world.settings[EU].clone();
    world.restore(EU);
    let refused = adopt(&world.settings[EU], "eu", "us").await.unwrap_err();
    world.settings[EU] = running;
    assert!(
        matches!(&refused, AdoptError::Refused { detail, .. } if detail.contains("still answers")),
        "{refused}"
    );
    // Nothing has changed: the region goes on.
    play(&world, AP, "ann", "tv").await.expect(201);

    world.lose(EU).await;
    for (lost, into, wanted) in [
        ("us", "ap", "give the settings file of the lost region us"),
        ("eu", "eu", "a region cannot adopt itself"),
        ("eu", "mars", "region mars is not among the peers"),
    ] {
        let refused = adopt(&world.settings[EU], lost, into).await.unwrap_err().to_string();
        assert!(refused.contains(wanted), "{refused}");
    }
    world.stop_region(AP).await;
    let refused = adopt(&world.settings[EU], "eu", "us").await.unwrap_err();
    assert!(matches!(&refused, AdoptError::Unavailable { region, .. } if region == "ap"), "{refused}");
    let mut foreign = world.settings[EU].clone();
    foreign.ledger = world.settings[AP].ledger.clone();
    let refused = adopt(&foreign, "eu", "us").await.unwrap_err().to_string();
    assert!(refused.contains("the ledger is region 3's"), "{refused}");
    world.start_region(AP).await;
    foreign_licenses_are_refused(&world).await;

    refuse_a_batch(&world.settings[EU].ledger.data_dir).await;
    // The answer of the first adoption may be lost: the second tells the unbilled usage as well.
    for is_first in [true, false] {
        let adopted = adopt(&world.settings[EU], "eu", "us").await.unwrap();
        assert_eq!(adopted.counts.is_some(), is_first);
        assert_eq!(adopted.unbilled, UnbilledUsage { sessions: 0, batches: 1 });
    }
    let refused = adopt(&world.settings[EU], "eu", "ap").await.unwrap_err();
    assert!(matches!(refused, AdoptError::Adopted(into) if into.number() == 2), "{refused}");
    world.close().await;
}
