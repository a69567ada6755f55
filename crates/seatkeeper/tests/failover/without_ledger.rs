//! Devices while PostgreSQL is down: a remembered plan decides, and after it the last limit known to the
//! pool.

use std::time::{Duration, Instant};

use seatkeeper_testbed::postgres::{Postgres, Stop};
use seatkeeper_testbed::redis::Redis;
use serde_json::{Value, json};
use sqlx::{Connection as _, Executor as _};

use super::scene_again::{judged, played};
use super::support::{Nodes, answered, seat};
use crate::harness::{Answer, Client};
use crate::support::subscriber::Subscriber;

const DEVICES: &str = "/api/v1/devices/sessions";

/// Time limit for an answer. On a busy machine some answers take longer: one of several is in time.
const ANSWERED_WITHIN: Duration = Duration::from_secs(1);

/// Time limit for any answer: shorter than the time that a node waits for the ledger.
const ANSWERED_MAX: Duration = Duration::from_secs(4);

/// The downtime of PostgreSQL before a client asks: longer than any estimate of its clock lasts, and shorter
/// than nodes remember plans.
const AWAY: Duration = Duration::from_secs(6);

/// The time for which nodes remember plans, in tests of forgetting.
const REMEMBERED: Duration = Duration::from_secs(1);

/// Devices are admitted without a commit while PostgreSQL is down.
const JOURNAL: (&str, &str) = ("DEVICES_DURABILITY", "journal");

async fn admit(client: &Client, device: &str) -> (Answer, Duration) {
    let asked = Instant::now();
    let answer = client.post(DEVICES, json!({ "device_id": device, "device_type": "tv" })).await;
    (answer, asked.elapsed())
}

/// Admits a device, checks the status of the answer, and adds the time of the answer to `took`.
async fn admitted(
    client: &Client,
    device: &str,
    status: u16,
    took: &mut Vec<Duration>,
) -> Result<Value, String> {
    let (answer, time) = admit(client, device).await;
    println!("{device}: {} after {time:?}", answer.status);
    took.push(time);
    if answer.status == status {
        Ok(answer.body)
    } else {
        Err(format!("{device}: {answer:?} after {time:?}"))
    }
}

/// Checks the times of answers.
fn in_time(took: &[Duration]) -> Result<(), String> {
    let one_is = took.iter().any(|took| *took < ANSWERED_WITHIN);
    let all_are = took.iter().all(|took| *took < ANSWERED_MAX);
    if one_is && all_are { Ok(()) } else { Err(format!("answered after {took:?}")) }
}

/// Starts a node over the test's own PostgreSQL, and a subscriber with one of two screens in use.
async fn scene(redis: &Redis, server: &Postgres, settings: &'static [(&str, &str)]) -> (Nodes, Client) {
    let mut nodes = Nodes::on_with(server.url("postgres"), settings);
    tokio::task::block_in_place(|| nodes.add(&redis.url()));
    let harness = &nodes.harnesses[0];
    Subscriber::make(&harness.admin(), "ann", 2, "evict").await;
    let client = harness.client("ann");
    answered(async || admit(&client, "first").await.0).await.expect(201);
    (nodes, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_is_remembered_decides_while_postgres_is_away() {
    played(a_remembered_plan_decides).await;
}

/// Returns `false` if the node stood still. PostgreSQL is down, so a lapsed lease stays lapsed.
async fn a_remembered_plan_decides() -> bool {
    let (redis, server) = (Redis::start(), Postgres::start());
    let (nodes, client) = scene(&redis, &server, &[JOURNAL]).await;
    tokio::task::block_in_place(|| server.stop(Stop::Fast));
    tokio::time::sleep(AWAY).await;

    let verdict = decided_by_plan(&client).await;

    tokio::task::block_in_place(|| server.start_again());
    answered(async || client.get("/readyz").await).await.expect(200);
    judged(nodes, verdict)
}

async fn decided_by_plan(client: &Client) -> Result<(), String> {
    let mut took = Vec::new();
    let second = admitted(client, "second", 201, &mut took).await?;
    assert_eq!((&second["device_limit"], &second["devices_in_use"]), (&json!(2), &json!(2)));
    // The plan evicts. A node without the plan would not.
    let third = admitted(client, "third", 201, &mut took).await?;
    assert_eq!((&third["outcome"], &third["devices_in_use"]), (&json!("admitted_with_eviction"), &json!(2)));
    in_time(&took)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_that_the_limit_that_the_pool_knew_last_decides() {
    played(the_last_known_limit_decides).await;
}

/// Returns `false` if the node stood still. PostgreSQL is down, so a lapsed lease stays lapsed.
async fn the_last_known_limit_decides() -> bool {
    let (redis, server) = (Redis::start(), Postgres::start());
    let (nodes, client) = scene(&redis, &server, &[JOURNAL, ("DEVICES_PLAN_CACHE_SECONDS", "1")]).await;
    tokio::task::block_in_place(|| server.stop(Stop::Fast));
    // Removes the plans shared between nodes as well.
    for key in redis.ask::<Vec<String>>(redis::cmd("KEYS").arg("sk:limits:*").take()) {
        redis.ask::<()>(redis::cmd("DEL").arg(key).take());
    }
    tokio::time::sleep(AWAY + REMEMBERED).await;

    let verdict = decided_by_last_limit(&client).await;

    tokio::task::block_in_place(|| server.start_again());
    // A limit looked up again evicts.
    answered(async || client.get("/readyz").await).await.expect(200);
    let started = Instant::now();
    while admit(&client, "third").await.0.status != 201 {
        assert!(started.elapsed() < Duration::from_secs(30), "the plan is not looked up again");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    judged(nodes, verdict)
}

async fn decided_by_last_limit(client: &Client) -> Result<(), String> {
    // The first request discovers that the ledger is down.
    let second = admitted(client, "second", 201, &mut Vec::new()).await?;
    assert_eq!(second["device_limit"], 2);
    let mut took = Vec::new();
    admitted(client, "third", 403, &mut took).await?;
    admitted(client, "second", 201, &mut took).await?;
    in_time(&took)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seats_that_are_held_and_not_on_record_yet_are_listed() {
    let (redis, server) = (Redis::start(), Postgres::start());
    let settings = &[("LEDGER_COMMIT_TIMEOUT_MILLISECONDS", "500")];
    let mut nodes = Nodes::on_with(server.url("postgres"), settings);
    tokio::task::block_in_place(|| nodes.add(&redis.url()));
    let (admin, client) = (nodes.harnesses[0].admin(), nodes.harnesses[0].client("crowd"));
    let license = nodes.harnesses[0].license(5).await;
    seat(&client, &license, "machine-0").await;

    // Blocks appends to the record, but not reads.
    let mut database = sqlx::PgConnection::connect(&server.url("postgres")).await.expect("a connection");
    database.execute("BEGIN; LOCK TABLE audit_log IN SHARE MODE").await.expect("a lock");
    for machine in ["machine-1", "machine-2", "machine-3", "machine-4"] {
        client.acquire(&license["license_key"], machine).await.expect(503);
    }
    let id = license["license_id"].as_str().expect("an id");
    let by_license = format!("/api/v1/licenses/{id}/sessions");
    let by_pool = format!("/api/v1/admin/sessions?pool_kind=license&pool={id}&live=true");
    for path in [by_license, by_pool] {
        let listed = admin.get(&path).await.expect(200);
        let mut holders: Vec<_> = listed["items"].as_array().expect("items").iter().collect();
        holders.sort_by_key(|item| item["machine_id"].to_string());
        let holders: Vec<_> =
            holders.iter().map(|item| item["machine_id"].as_str().expect("a holder")).collect();
        assert_eq!(holders, ["machine-0", "machine-1", "machine-2", "machine-3", "machine-4"], "{path}");
        let page = admin.get(&format!("{path}{}limit=2", if path.contains('?') { "&" } else { "?" })).await;
        assert_eq!(page.expect(200)["items"].as_array().map(Vec::len), Some(2), "{path}");
    }
    database.execute("ROLLBACK").await.expect("the lock is given back");
    answered(async || client.acquire(&license["license_key"], "machine-4").await).await.expect(200);
    drop(nodes.close());
}
