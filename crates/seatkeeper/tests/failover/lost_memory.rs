//! Redis loses its whole memory, or every change after a snapshot.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use seatkeeper_core::{SessionId, Span};
use seatkeeper_testbed::clock::Clock;
use seatkeeper_testbed::redis::{Memory, Redis, RedisSetup};
use serde_json::{Value, json};

use super::support::{Nodes, answered, denied, ended, released, renewed, seat, seated};
use crate::harness::Harness;
use crate::support::books::opened;
use crate::support::scene::License;
use crate::until::within;

/// Time limit for a change to take effect, on a busy machine.
const WAIT_MAX: Duration = Duration::from_secs(30);

/// Starts a server over this Redis.
fn house_over(redis: &Redis) -> Harness {
    Harness::open_with(&[("REGISTRY_URL", &redis.url())])
}

#[tokio::test]
async fn nobody_loses_a_seat_when_redis_restarts_empty_and_nobody_gets_one_too_many() {
    let mut redis = Redis::start();
    let mut harness = house_over(&redis);
    let (license, client) = (harness.license(2).await, harness.client("crowd"));
    let (ann, bob) = (seat(&client, &license, "ann").await, seat(&client, &license, "bob").await);

    redis.kill();
    redis.start_again(Memory::Lost);

    renewed(&client, &ann).await;
    denied(&client, &license["license_key"], "carl").await;
    renewed(&client, &bob).await;
    released(&client, &bob).await;
    seat(&client, &license, "carl").await;
    ended(&client, &bob).await;
    harness.stop();
    harness.prove();
}

/// The TTL of a license is raised, told to a holder, and lowered again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_has_the_ttl_that_was_told_last_when_redis_restarts_empty() {
    let mut redis = Redis::start();
    let flush = &[("LEDGER_HEARTBEAT_FLUSH_SECONDS", "1")];
    let nodes = tokio::task::block_in_place(|| Nodes::over_with(&[redis.url()], flush));
    let (admin, client) = (nodes.harnesses[0].admin(), &nodes.clients()[0]);
    let license = License::make(&admin, 1, Some(60)).await;
    let session = seated(client, &license.key, "ann").await["session_id"].clone();
    let path = format!("/api/v1/admin/licenses/{}", license.id);
    let lasting = async |seconds: u64| {
        answered(async || admin.patch(&path, Some(json!({ "ttl_seconds": seconds }))).await).await.expect(200)
    };
    lasting(600).await;
    let told = within(WAIT_MAX, "the longer TTL is told", async || {
        let told = answered(async || client.heartbeat(&session).await).await.expect(200);
        if told["expires_in_seconds"] == 600 { Ok(told) } else { Err(told.to_string()) }
    })
    .await;
    let ledger = opened(nodes.ledger()).await;
    let id: SessionId = session.as_str().and_then(|text| text.parse().ok()).expect("an id");
    within(WAIT_MAX, "the heartbeat is on record", async || {
        let found = ledger.session(id).await.expect("the ledger answers").expect("a session");
        if found.session.ttl == Span::from_secs(600) { Ok(()) } else { Err(format!("{found:?}")) }
    })
    .await;
    lasting(60).await;

    tokio::task::block_in_place(|| {
        redis.kill();
        redis.start_again(Memory::Lost);
    });

    denied(client, &license.key, "bob").await;
    let kept = format!("/api/v1/licenses/sessions/{}", session.as_str().expect("an id"));
    let kept = answered(async || client.get(&kept).await).await.expect(200);
    let end = |answer: &Value| answer["expires_at"].as_str().expect("an end").to_owned();
    assert!(end(&told) <= end(&kept), "told {told:#}, kept {kept:#}");
    drop(nodes.close());
}

/// The lead of a clock: believed, and longer than the test.
const AHEAD: Duration = Duration::from_secs(300);

/// The ledger's proof fails if a pool's next event is dated before the last.
#[tokio::test]
async fn time_goes_on_from_the_record_when_the_clock_of_an_empty_redis_is_behind() {
    let clock = Arc::new(Clock::new());
    clock.advance(AHEAD);
    let mut redis = RedisSetup::default().clock(&clock).start();
    let mut harness = house_over(&redis);
    let (license, client) = (harness.license(1).await, harness.client("crowd"));
    let ann = seat(&client, &license, "ann").await;
    released(&client, &ann).await;

    redis.kill();
    clock.set_back(AHEAD);
    redis.start_again(Memory::Lost);

    seat(&client, &license, "bob").await;
    harness.stop();
    harness.prove();
}

#[tokio::test]
async fn what_happened_after_a_snapshot_is_not_undone_by_it() {
    let mut redis = Redis::start();
    let nodes = Nodes::over(&[redis.url(), redis.url(), redis.url()]);
    let (license, clients) = (nodes.harnesses[0].license(1).await, nodes.clients());
    let ann = seat(&clients[0], &license, "ann").await;
    let snapshot = redis.snapshot();
    released(&clients[1], &ann).await;
    let bob = seat(&clients[2], &license, "bob").await;

    redis.kill();
    redis.start_again(Memory::Snapshot(snapshot));

    for client in &clients {
        renewed(client, &bob).await;
        ended(client, &ann).await;
        denied(client, &license["license_key"], "carl").await;
    }
    released(&clients[0], &bob).await;
    seat(&clients[1], &license, "carl").await;
    drop(nodes.close());
}

/// The number of rebuilds of full buckets. On a busy machine some take long for lack of processors.
const REBUILDS: usize = 3;

/// The time limit for a connection of the node to PostgreSQL, in milliseconds.
const CONNECTION_WAIT_MILLIS_MAX: u64 = 5_000;

/// A rebuild reads several buckets at the same time, and asks the ledger for the terms of each pool. The trial
/// has more sessions in more buckets than the node's connections to PostgreSQL can have in flight, so reads
/// that kept their connections while they asked for terms would wait for each other until their time limit of 5
/// s, in every rebuild.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebuild_of_full_buckets_never_waits_for_a_connection() {
    const LICENSES: usize = 8;
    const SEATS: u32 = 200;
    let mut redis = Redis::start();
    let mut nodes = Nodes::over(&[redis.url()]);
    let client = nodes.harnesses[0].client("crowd");
    let mut sessions = Vec::new();
    for _ in 0..LICENSES {
        let license = nodes.harnesses[0].license(SEATS).await;
        let machines: Vec<_> = (0..SEATS).map(|machine| format!("machine-{machine}")).collect();
        let seats = machines.iter().map(|machine| seated(&client, &license["license_key"], machine));
        sessions.extend(join_all(seats).await.pop().map(|taken| taken["session_id"].clone()));
    }

    for _ in 0..REBUILDS {
        redis.kill();
        redis.start_again(Memory::Lost);
        for session in &sessions {
            renewed(&client, session).await;
        }
    }
    let (status, log) = nodes.harnesses[0].stop();
    assert_eq!(status.code(), Some(0), "{log}");
    let took = rebuilds_of(LICENSES as u64 * u64::from(SEATS), &log);
    println!("rebuilds of all sessions took {took:?} ms");
    let fastest = took.iter().min().unwrap_or_else(|| panic!("no rebuild of all sessions: {log}"));
    assert!(*fastest < CONNECTION_WAIT_MILLIS_MAX, "{took:?}");
    nodes.harnesses[0].prove();
}

/// Returns the durations of the rebuilds of exactly `sessions` sessions in a log, in milliseconds.
fn rebuilds_of(sessions: u64, log: &str) -> Vec<u64> {
    let rebuilds = log.lines().filter(|line| line.contains("rebuild done"));
    let rebuilds = rebuilds.map(|line| serde_json::from_str::<Value>(line).expect("a line of JSON"));
    let of_all = rebuilds.filter(|rebuild| rebuild["sessions"] == sessions);
    of_all.map(|rebuild| rebuild["took_ms"].as_u64().expect("a number")).collect()
}
