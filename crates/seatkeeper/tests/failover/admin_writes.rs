//! Writes by admins: answers while Redis is away, and invalidations of other nodes.

use seatkeeper_testbed::redis::{Memory, Redis};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::support::{Nodes, SERVED_WAIT_MAX, seat};
use crate::harness::Client;
use crate::until::within;

const LICENSES: &str = "/api/v1/admin/licenses";
const PLANS: &str = "/api/v1/admin/plans";
const SUBSCRIPTIONS: &str = "/api/v1/admin/subscriptions";

/// The pub/sub channel for invalidations between nodes.
const CHANNEL: &str = "sk:entitlements";

/// The key of the tenant's generation in the shared cache: the name `default` is in hexadecimal.
const GENERATION: &str = "sk:limits:{64656661756c74}";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_without_redis_is_answered_with_success_and_done_once() {
    let mut redis = Redis::start();
    let nodes = Nodes::over_with(&[redis.url()], &[("REGISTRY_WHEN_DOWN", "deny")]);
    let (harness, admin) = (&nodes.harnesses[0], nodes.harnesses[0].admin());
    let held = harness.license(3).await;
    seat(&harness.client("crowd"), &held, "machine").await;
    let held_path = format!("{LICENSES}/{}", id(&held, "license_id"));

    redis.kill();
    harness.client("crowd").acquire(&held["license_key"], "another").await.expect(503);
    let made = admin.post(LICENSES, json!({ "max_seats": 1 })).await.expect(201);
    assert_eq!(made["seats_used"], 0);
    assert_eq!(admin.get(&held_path).await.expect(200)["seats_used"], Value::Null);
    assert_eq!(seats_used(&admin).await, [Value::Null, Value::Null]);
    let listed = harness.command(&["license", "list"]);
    assert!(listed.stdout.contains("- of 3"), "{} {}", listed.stdout, listed.stderr);

    let ask = json!({ "user": "ann", "plan": "premium" });
    let subscription = admin.post(SUBSCRIPTIONS, ask.clone()).await.expect(201);
    let path = format!("{SUBSCRIPTIONS}/{}", id(&subscription, "subscription_id"));
    let changed = admin.patch(&path, Some(json!({ "plan": "standard" }))).await.expect(200);
    assert_eq!(changed["plan"], "standard");
    admin.delete(&path).await.expect(204);
    admin.post(SUBSCRIPTIONS, ask).await.expect(201);

    redis.start_again(Memory::Lost);
    within(SERVED_WAIT_MAX, "the seats in use are known again", async || {
        let used = seats_used(&admin).await;
        if used == [json!(1), json!(0)] { Ok(()) } else { Err(format!("{used:?}")) }
    })
    .await;
    drop(nodes.close());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_write_or_one_without_effect_invalidates_nothing() {
    let redis = Redis::start();
    let nodes = Nodes::over(&[redis.url()]);
    let admin = nodes.harnesses[0].admin();
    admin.post(SUBSCRIPTIONS, json!({ "user": "ann", "plan": "basic" })).await.expect(201);
    let mut ledger = PgConnection::connect(nodes.ledger_url()).await.expect("a connection");
    // A young plan is invalidated by every write: the node of its change may have died before the invalidation.
    let aged = sqlx::query("UPDATE plans SET updated_at = updated_at - INTERVAL '1 hour'");
    aged.execute(&mut ledger).await.expect("older plans");
    drop(ledger);
    let client = redis::Client::open(redis.url()).expect("the URL is valid");
    let mut connection = client.get_connection().expect("a connection");
    connection.set_read_timeout(Some(SERVED_WAIT_MAX)).expect("a time limit");
    let mut announced = connection.as_pubsub();
    announced.subscribe(CHANNEL).expect("a subscription");

    let nowhere = Uuid::new_v4();
    let change = Some(json!({ "plan": "premium" }));
    admin.post(SUBSCRIPTIONS, json!({ "user": "ann", "plan": "premium" })).await.expect(409);
    admin.patch(&format!("{SUBSCRIPTIONS}/{nowhere}"), change).await.expect(404);
    admin.delete(&format!("{SUBSCRIPTIONS}/{nowhere}")).await.expect(404);
    admin.patch(&format!("{PLANS}/none"), Some(json!({ "device_limit": 2 }))).await.expect(404);
    admin.patch(&format!("{PLANS}/premium"), Some(json!({ "device_limit": 4 }))).await.expect(200);
    admin.patch(&format!("{LICENSES}/{nowhere}"), Some(json!({ "max_seats": 2 }))).await.expect(404);
    admin.post(SUBSCRIPTIONS, json!({ "user": "last", "plan": "basic" })).await.expect(201);

    let first: String = announced.get_message().and_then(|message| message.get_payload()).expect("a message");
    let first: Value = serde_json::from_str(&first).expect("JSON");
    assert_eq!(first["subscriber"]["user"], "last", "{first}");
    let mut generation = redis::cmd("GET");
    generation.arg(GENERATION);
    assert_eq!(redis.ask::<Option<u64>>(generation), None);

    admin.patch(&format!("{PLANS}/premium"), Some(json!({ "device_limit": 5 }))).await.expect(200);
    let mut generation = redis::cmd("GET");
    generation.arg(GENERATION);
    assert!(redis.ask::<Option<u64>>(generation).is_some(), "a changed plan invalidates the tenant");
    drop(announced);
    drop(nodes.close());
}

/// Returns the seats in use of each license.
async fn seats_used(admin: &Client) -> Vec<Value> {
    let page = admin.get(LICENSES).await.expect(200);
    let items = page["items"].as_array().expect("a list");
    items.iter().map(|license| license["seats_used"].clone()).collect()
}

fn id<'a>(entry: &'a Value, name: &str) -> &'a str {
    entry[name].as_str().expect("an id")
}
