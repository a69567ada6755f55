//! Nodes with clocks an hour apart: only the registry's clock decides, never a node's. Stores with clocks minutes apart: the
//! clock that dates an admission decides it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use seatkeeper_testbed::clock::Clock;
use seatkeeper_testbed::postgres;
use seatkeeper_testbed::redis::{Redis, RedisCluster, RedisSetup};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

use super::steady::{Manner, Steady, storm_permit};
use super::support::{Nodes, answered, released};
use super::trial::ttl_seconds;
use crate::harness::Client;
use crate::support::knobs;
use crate::support::scene::License;
use crate::support::subscriber::Subscriber;

const HOUR: Duration = Duration::from_secs(3_600);
const MINUTE: Duration = Duration::from_secs(60);
const TTL: Duration = Duration::from_secs(15);

/// Enough users for pools on each master of a cluster, except once in a million runs.
const USERS: usize = 36;

/// Heartbeats are on record within this time: less than the difference of two clocks.
const ON_RECORD_MAX: Duration = Duration::from_secs(40);

/// The most by which two clocks with millisecond resolution disagree.
const GRAIN: Duration = Duration::from_millis(2);

/// Starts three nodes: an hour ahead, on time, and an hour behind.
fn nodes(redis: &Redis, ledger: String) -> (Nodes, [Clock; 3]) {
    let clocks = [Clock::new(), Clock::new(), Clock::new()];
    clocks[0].advance(HOUR);
    clocks[2].set_back(HOUR);
    let mut nodes = Nodes::on(ledger);
    clocks.iter().for_each(|clock| nodes.add_in(&clock.environment(), &redis.url()));
    (nodes, clocks)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_lives_and_ends_by_the_registrys_clock_at_whichever_node() {
    let (redis, database) = (Redis::start(), postgres::database());
    let (nodes, _clocks) = nodes(&redis, database.url());
    let clients = nodes.clients();
    let license = License::make(&nodes.harnesses[0].admin(), 1, Some(TTL.as_secs())).await;
    for (number, client) in clients.iter().enumerate() {
        let taken = client.acquire(&license.key, &format!("ann-{number}")).await.expect(201);
        let session = &taken["session_id"];
        let (mut sent, mut heard, mut expires) = (Instant::now(), Instant::now(), Value::Null);
        for other in &clients {
            sent = Instant::now();
            let beat = other.heartbeat(session).await.expect(200);
            heard = Instant::now();
            assert_eq!(beat["expires_in_seconds"], TTL.as_secs(), "{beat:#}");
            expires = beat["expires_at"].clone();
        }
        for other in &clients {
            let shown =
                other.get(&format!("/api/v1/licenses/sessions/{}", session.as_str().expect("an id"))).await;
            assert_eq!(shown.expect(200)["expires_at"], expires);
        }
        free_when_its_time_is_over(&clients, &license, number, sent, heard).await;
        for other in &clients {
            assert_eq!(other.heartbeat(session).await.expect(410)["reason"], "expired");
        }
    }
    drop(nodes.close());
}

/// Checks that every node denies the seat until the TTL is over, and that the seat is free afterwards.
async fn free_when_its_time_is_over(
    clients: &[Client],
    license: &License,
    number: usize,
    sent: Instant,
    heard: Instant,
) {
    let newcomer = format!("bob-{number}");
    for turn in 0.. {
        let asked = Instant::now();
        let client = &clients[turn % clients.len()];
        let answer = answered(async || client.acquire(&license.key, &newcomer).await).await;
        if [200, 201].contains(&answer.status) {
            assert!(Instant::now() + GRAIN >= sent + TTL, "admitted too soon");
            assert!(turn >= clients.len(), "not every node denied");
            released(&clients[0], &answer.body["session_id"]).await;
            return;
        }
        assert_eq!(answer.status, 403, "{:#}", answer.body);
        assert!(asked <= heard + TTL + GRAIN, "denied too late");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_through_all_of_them_ends_nobody_and_admits_nobody_too_many() {
    let _permit = storm_permit().await;
    let (redis, database) = (Redis::start(), postgres::database());
    let (nodes, _clocks) = nodes(&redis, database.url());
    let manner = Manner { ttl_seconds: ttl_seconds(), pinned: false, seed: knobs::seed() };
    let mut steady = Steady::begin(&nodes, manner).await;
    steady.goes_on(100).await;
    steady.end(nodes).await;
}

/// Returns a clock set back by `by`.
fn behind(by: Duration) -> Arc<Clock> {
    let clock = Arc::new(Clock::new());
    clock.set_back(by);
    clock
}

/// Subscribes a user from now on, and takes both screens of the plan at once. Returns the last session.
async fn takes_both_screens(nodes: &Nodes, user: &str) -> Value {
    Subscriber::make(&nodes.harnesses[0].admin(), user, 2, "deny").await;
    let client = nodes.harnesses[0].client(user);
    let mut session = Value::Null;
    for device in ["tv", "phone"] {
        let ask = json!({ "device_id": device, "device_type": "tv" });
        let taken = answered(async || client.post("/api/v1/devices/sessions", ask.clone()).await).await;
        let taken = taken.expect(201);
        assert_eq!(taken["device_limit"], 2, "{user} waits for the start");
        session = taken["session_id"].clone();
    }
    session
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_subscription_is_active_at_once_over_a_redis_behind_postgresql() {
    let redis = RedisSetup::default().clock(&behind(2 * MINUTE)).start();
    let nodes = Nodes::over(&[redis.url()]);
    takes_both_screens(&nodes, "ann").await;
    drop(nodes.close());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_starts_by_the_clock_of_its_own_master_of_a_cluster() {
    let cluster = RedisCluster::start_by(&[behind(Duration::ZERO), behind(MINUTE), behind(2 * MINUTE)]);
    let nodes = Nodes::over(&[cluster.url()]);
    for number in 0..USERS {
        takes_both_screens(&nodes, &format!("ann-{number}")).await;
    }
    drop(nodes.close());
}

/// A node keeps the heartbeats of all masters until they are on record, and each master dates its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_are_on_record_whichever_master_of_a_cluster_dates_them() {
    let cluster = RedisCluster::start_by(&[behind(Duration::ZERO), behind(MINUTE), behind(2 * MINUTE)]);
    let settings = &[("LEDGER_HEARTBEAT_FLUSH_SECONDS", "1"), ("DEVICES_TTL_SECONDS", "600")];
    let nodes = Nodes::over_with(&[cluster.url()], settings);
    let mut screens = Vec::new();
    for user in (0..USERS).map(|number| format!("ann-{number}")) {
        screens.push((nodes.harnesses[0].client(&user), takes_both_screens(&nodes, &user).await));
    }
    let mut ledger = PgConnection::connect(nodes.ledger_url()).await.expect("a connection");
    let began = Instant::now();
    loop {
        for (client, session) in &screens {
            let beat = json!({ "session_id": session });
            answered(async || client.post("/api/v1/devices/sessions/heartbeat", beat.clone()).await)
                .await
                .expect(204);
        }
        let renewed = "SELECT count(*) FROM sessions WHERE last_heartbeat_at > started_at";
        let renewed = sqlx::query_scalar::<_, i64>(renewed).fetch_one(&mut ledger).await.expect("a count");
        if renewed == USERS as i64 {
            break;
        }
        assert!(began.elapsed() < ON_RECORD_MAX, "{renewed} of {USERS} screens have a heartbeat on record");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    drop(nodes.close());
}
