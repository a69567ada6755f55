//! A wrong time in the ledger: the host's clock was ten years ahead when the servers started. `seatkeeper
//! repair clock` corrects registry time, and the audit log is proved before and after the repair.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, TimeDelta, Utc};
use seatkeeper_testbed::clock::Clock;
use seatkeeper_testbed::postgres::{self, Postgres};
use seatkeeper_testbed::redis::RedisSetup;
use serde_json::{Value, json};

use super::support::{answered, denied, ended, released, renewed};
use crate::harness::{Answer, Harness, Output, run};
use crate::support::scene::License;
use crate::until::within;

const DECADE: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Longer than the usual downtime of servers.
const MONTHS: Duration = Duration::from_secs(90 * 86_400);

const TTL: Duration = Duration::from_secs(4);

const VIEWER: &str = "viewer";
const SCREENS: &str = "/api/v1/devices/sessions";

/// Time limit for a silent session to expire on a busy machine.
const EXPIRES_WITHIN: Duration = Duration::from_secs(30);

/// Time limit for the end of a stopped server's lock.
const UNLOCKED_WITHIN: Duration = Duration::from_secs(30);

/// The error of a command while a server uses the ledger.
const LOCKED: &str = "another process uses";

/// The arguments that locate the ledger of a stopped server.
struct Record(Vec<String>);

impl Record {
    fn command(&self, args: &[&str]) -> Output {
        let own = self.0.iter().map(String::as_str);
        tokio::task::block_in_place(|| run(&args.iter().copied().chain(own).collect::<Vec<_>>()))
    }

    fn repair(&self, args: &[&str]) -> Output {
        self.command(&[&["repair", "clock", "--by", "ann"], args].concat())
    }

    /// Repairs the ledger of a stopped server. The dry run before the repair must change nothing.
    async fn is_repaired(&self) {
        for _ in 0..2 {
            // PostgreSQL frees the lock of a stopped server a moment later.
            let dry = within(UNLOCKED_WITHIN, "the ledger is unlocked", async || {
                let dry = self.repair(&[]);
                if dry.stderr.contains(LOCKED) { Err(dry.stderr) } else { Ok(dry) }
            })
            .await;
            assert!(dry.status.success(), "{}{}", dry.stdout, dry.stderr);
            assert!(dry.stdout.contains("Nothing was changed"), "{}", dry.stdout);
        }
        let repaired = self.repair(&["--apply"]);
        assert!(repaired.status.success(), "{}{}", repaired.stdout, repaired.stderr);
        let again = self.repair(&["--apply"]);
        assert!(again.stdout.contains("Registry time is right"), "{}{}", again.stdout, again.stderr);
    }

    fn states_the_repair(&self) {
        let verified = self.command(&["audit", "verify"]);
        assert!(verified.status.success(), "{}{}", verified.stdout, verified.stderr);
        let line = verified.stdout.lines().find(|line| line.contains("was set back")).expect("the repair");
        assert!(line.contains("by ann"), "{line}");
    }
}

/// Returns the time by which a date is ahead of the machine's clock.
fn ahead(date: &Value) -> Duration {
    let date: DateTime<Utc> = date.as_str().and_then(|text| text.parse().ok()).expect("a date");
    (date - now()).to_std().unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "it decides nothing; dates on record are compared with it")]
fn now() -> DateTime<Utc> {
    std::time::SystemTime::now().into()
}

/// Takes a seat for a machine, and returns the answer with its expiry.
async fn taken(harness: &Harness, license: &License, machine: &str) -> Value {
    let client = harness.client("crowd");
    answered(async || client.acquire(&license.key, machine).await).await.expect(201)
}

/// Subscribes a viewer to a plan of two screens. The subscription has begun by the wrong time alone: by the true time the viewer
/// has one screen. No session stays.
async fn subscribed(harness: &Harness) {
    let admin = harness.admin();
    let plan = json!({ "name": "two", "device_limit": 2, "when_full": "deny" });
    admin.post("/api/v1/admin/plans", plan).await.expect(201);
    let date = |days| (now() + TimeDelta::days(days)).to_rfc3339_opts(SecondsFormat::Secs, true);
    let later = json!({ "user": VIEWER, "plan": "two", "starts_at": date(180), "ends_at": date(20 * 365) });
    admin.post("/api/v1/admin/subscriptions", later).await.expect(201);
    for device in ["tv", "phone"] {
        let screen = watches(harness, device).await.expect(201);
        let session = screen["session_id"].as_str().expect("an id");
        let client = harness.client(VIEWER);
        answered(async || client.delete(&format!("{SCREENS}/{session}")).await).await.expect(204);
    }
}

/// Checks that the viewer has one screen, because the subscription has not begun.
async fn watches_by_the_true_time(harness: &Harness) {
    let screen = watches(harness, "tv").await.expect(201);
    assert_eq!(screen["device_limit"], 1, "{screen:#}");
}

/// Asks for a screen of the viewer.
async fn watches(harness: &Harness, device: &str) -> Answer {
    let client = harness.client(VIEWER);
    let screen = json!({ "device_id": device, "device_type": "tv" });
    answered(async || client.post(SCREENS, screen.clone()).await).await
}

/// Checks that Ann's seat becomes free at the end of the TTL, and not before.
async fn expires_in_time(harness: &Harness, license: &License, ann: &Value) {
    let client = harness.client("crowd");
    renewed(&client, ann).await;
    denied(&client, &license.key, "bob").await;
    let bob = within(EXPIRES_WITHIN, "the silent session expires", async || {
        let answer = answered(async || client.acquire(&license.key, "bob").await).await;
        if [200, 201].contains(&answer.status) { Ok(answer.body) } else { Err(answer.status.to_string()) }
    })
    .await;
    assert!(ahead(&bob["expires_at"]) <= TTL, "{bob:#}");
    ended(&client, ann).await;
    released(&client, &bob["session_id"]).await;
}

/// Puts a wrong time on record by an embedded server, and repairs the record. `ledger` is the URL of a database for the
/// record; the record of `None` is in the data directory.
async fn is_set_right_without_nodes(ledger: Option<&str>) {
    let clock = Clock::new();
    clock.advance(DECADE);
    let settings: Vec<_> = ledger.iter().map(|url| ("LEDGER_URL", *url)).collect();
    let mut harness = tokio::task::block_in_place(|| Harness::open_in(&clock.environment(), &settings));
    let data_dir = harness.data_dir().to_str().expect("a path");
    let record = Record(match ledger {
        Some(url) => vec!["--ledger".into(), url.into()],
        None => vec!["--data-dir".into(), data_dir.into()],
    });
    let license = License::make(&harness.admin(), 1, Some(TTL.as_secs())).await;
    let ann = taken(&harness, &license, "ann").await;
    assert!(ahead(&ann["expires_at"]) > DECADE / 2, "{ann:#}");
    subscribed(&harness).await;
    let refused = record.repair(&["--apply"]);
    assert!(refused.stderr.contains(LOCKED), "{}{}", refused.stdout, refused.stderr);
    tokio::task::block_in_place(|| harness.stop());
    clock.set_back(DECADE);

    tokio::task::block_in_place(|| harness.start());
    let kept = harness.client("crowd").heartbeat(&ann["session_id"]).await.expect(200);
    assert!(ahead(&kept["expires_at"]) > DECADE / 2, "the record does not go back by itself: {kept:#}");
    let (_, log) = tokio::task::block_in_place(|| harness.stop());
    assert!(log.contains("run `seatkeeper repair clock`"), "{log}");

    record.is_repaired().await;
    record.states_the_repair();
    tokio::task::block_in_place(|| harness.start());
    watches_by_the_true_time(&harness).await;
    expires_in_time(&harness, &license, &ann["session_id"]).await;
    let (_, log) = tokio::task::block_in_place(|| harness.stop());
    assert!(!log.contains("repair clock"), "{log}");
    record.states_the_repair();

    clock.advance(MONTHS);
    tokio::task::block_in_place(|| harness.start());
    let (_, log) = tokio::task::block_in_place(|| harness.stop());
    assert!(log.contains("more than 30 days after the ledger's latest record"), "{log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_time_on_the_record_of_an_embedded_server_is_set_right() {
    is_set_right_without_nodes(None).await;
}

/// No node ever shared a registry in the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_time_on_the_record_of_an_embedded_server_in_postgresql_is_set_right() {
    let database = postgres::database();
    is_set_right_without_nodes(Some(&database.url())).await;
}

/// Puts a wrong time on record over PostgreSQL, and repairs the record. `stores` holds the settings of the stores.
/// `before_repair` runs once the nodes have stopped.
async fn is_set_right(clock: &Clock, stores: [(&str, &str); 2], before_repair: impl FnOnce()) {
    let [_, (_, ledger)] = stores;
    let mut harness = tokio::task::block_in_place(|| Harness::open_in(&clock.environment(), &stores));
    let record = Record(vec!["--ledger".into(), ledger.to_owned()]);
    let license = License::make(&harness.admin(), 1, Some(TTL.as_secs())).await;
    let ann = taken(&harness, &license, "ann").await;
    assert!(ahead(&ann["expires_at"]) > DECADE / 2, "{ann:#}");
    subscribed(&harness).await;
    tokio::task::block_in_place(|| harness.stop());
    clock.set_back(DECADE);

    tokio::task::block_in_place(|| harness.start());
    tokio::time::sleep(TTL + Duration::from_secs(2)).await;
    let client = harness.client("crowd");
    denied(&client, &license.key, "bob").await;
    let refused = record.repair(&["--apply"]);
    assert!(refused.stderr.contains("nodes are live"), "{}{}", refused.stdout, refused.stderr);
    tokio::task::block_in_place(|| harness.stop());

    before_repair();
    record.is_repaired().await;
    record.states_the_repair();
    tokio::task::block_in_place(|| harness.start());
    watches_by_the_true_time(&harness).await;
    expires_in_time(&harness, &license, &ann["session_id"]).await;
    tokio::task::block_in_place(|| harness.stop());
    record.states_the_repair();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_time_on_record_in_postgresql_is_set_right() {
    let clock = Arc::new(Clock::new());
    clock.advance(DECADE);
    let postgres = tokio::task::block_in_place(|| Postgres::start_by(&clock));
    let database = postgres.url("postgres");
    is_set_right(&clock, [("REGISTRY_URL", &database), ("LEDGER_URL", &database)], || {}).await;
}

/// Redis remembers the wrong time in its buckets. The page on operations tells the operator to empty Redis.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_time_on_record_over_redis_is_set_right() {
    let clock = Arc::new(Clock::new());
    clock.advance(DECADE);
    let postgres = tokio::task::block_in_place(|| Postgres::start_by(&clock));
    let redis = RedisSetup::default().clock(&clock).start();
    let (ledger, registry) = (postgres.url("postgres"), redis.url());
    let empty_redis = || redis.ask::<()>(redis::cmd("FLUSHDB"));
    is_set_right(&clock, [("REGISTRY_URL", &registry), ("LEDGER_URL", &ledger)], empty_redis).await;
}
