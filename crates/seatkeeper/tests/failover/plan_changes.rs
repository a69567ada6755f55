//! A plan changes at one node, and binds subscribers at every other node.

use std::time::{Duration, Instant};

use seatkeeper_core::{Actor, Origin, RegistryTime, Seats};
use seatkeeper_ledger::licenses::{LicenseChange, LicenseId, Status};
use seatkeeper_ledger::plans::PlanChange;
use seatkeeper_ledger::{Ledger, Settings, Write};
use seatkeeper_server::wall_clock;
use seatkeeper_testbed::redis::Redis;
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

use super::support::{Nodes, seat};
use crate::harness::{Client, TENANT};
use crate::support::knobs;
use crate::support::subscriber::Subscriber;

const DEVICES: &str = "/api/v1/devices/sessions";
const NODES: usize = 3;

/// Time limit for a change to bind every node that can be notified. On a busy machine some changes take longer:
/// one of [`CHANGES_MAX`] is in time.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// The most changes at a node until a change binds every node in time.
const CHANGES_MAX: usize = 5;

/// Time limit for any change to bind every node that can be notified. Without a notice a node remembers a plan
/// for longer.
const TOLD_LATE_MAX: Duration = Duration::from_secs(10);

/// Time limit for a repeated change to bind every node: on a busy machine, but before the nodes forget the old plan by
/// themselves.
const REPEATED_WITHIN: Duration = Duration::from_secs(5);

/// Time limit for a change to bind a node that cannot be notified.
const UNTOLD_WITHIN: Duration = Duration::from_secs(90);

/// The pub/sub channel for invalidations between nodes.
const CHANNEL: &str = "sk:entitlements";

/// Takes the function away by which nodes send notices. The nodes have sent none before.
const NO_NOTICES: &str = "ALTER FUNCTION pg_catalog.pg_notify(text, text) RENAME TO no_notify";

/// Time limit for a node to carry out a change that a dead node left undone.
const CARRIED_OUT_WITHIN: Duration = Duration::from_secs(20);

const PAUSE: Duration = Duration::from_millis(20);

/// A subscriber with requests at a single node. The remaining nodes never see the subscriber's pool.
struct Viewer {
    client: Client,
    session: Value,
}

impl Viewer {
    async fn at(nodes: &Nodes, node: usize, plan: &str) -> Self {
        let user = format!("viewer-{node}");
        let subscription = json!({ "user": user, "plan": plan });
        nodes.harnesses[node].admin().post("/api/v1/admin/subscriptions", subscription).await.expect(201);
        let client = nodes.harnesses[node].client(&user);
        let tv = json!({ "device_id": "tv", "device_type": "tv" });
        let session = client.post(DEVICES, tv).await.expect(201)["session_id"].clone();
        Self { client, session }
    }

    /// Returns the limit by which the viewer's node decides.
    async fn limit(&self) -> u64 {
        let tv = json!({ "device_id": "tv", "device_type": "tv", "session_id": self.session });
        self.client.post(DEVICES, tv).await.expect(200)["device_limit"].as_u64().expect("a limit")
    }

    /// Waits until the viewer's limit is `limit`, and returns the time since the change. Fails the test if a
    /// request sent later than `within` after the change gets another limit.
    async fn limit_becomes(&self, limit: u64, changed: Instant, within: Duration) -> Duration {
        loop {
            let asked = changed.elapsed();
            let told = self.limit().await;
            if told == limit {
                return asked;
            }
            assert!(asked < within, "whoever asks {asked:?} later is told {told}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn viewers(nodes: &Nodes) -> (Subscriber, Vec<Viewer>) {
    let of_plan = Subscriber::make(&nodes.harnesses[0].admin(), "ann", 1, "evict").await;
    let mut viewers = Vec::new();
    for node in 0..NODES {
        viewers.push(Viewer::at(nodes, node, &of_plan.plan).await);
    }
    (of_plan, viewers)
}

#[tokio::test]
async fn a_change_at_one_node_binds_every_node_within_a_second() {
    let redis = Redis::start();
    let nodes = Nodes::over(&[redis.url(), redis.url(), redis.url()]);
    let (ann, viewers) = viewers(&nodes).await;
    let mut limits = 2..;
    for harness in &nodes.harnesses {
        let mut slowest = Vec::new();
        for limit in limits.by_ref().take(CHANGES_MAX) {
            let change = Some(json!({ "device_limit": limit }));
            harness.admin().patch(&ann.plan_path(), change).await.expect(200);
            let changed = Instant::now();
            let told = viewers.iter().map(|viewer| viewer.limit_becomes(limit, changed, TOLD_LATE_MAX));
            let told = futures_util::future::join_all(told).await;
            println!("{told:?}");
            slowest.extend(told.into_iter().max());
            if slowest.last().is_some_and(|last| *last < TOLD_WITHIN) {
                break;
            }
        }
        assert!(
            slowest.iter().any(|told| *told < TOLD_WITHIN),
            "no change binds every node in time: {slowest:?}"
        );
    }
    drop(nodes.close());
}

#[tokio::test]
async fn with_all_announcements_cut_it_binds_them_once_what_they_remember_is_too_old() {
    let redis = Redis::start();
    let (remembered, settings): (_, &[_]) = match knobs::plans_remembered_in_full() {
        true => (UNTOLD_WITHIN, &[]),
        false => (Duration::from_secs(10), &[("DEVICES_PLAN_CACHE_SECONDS", "2")]),
    };
    let nodes = Nodes::over_with(&[redis.url(), redis.url(), redis.url()], settings);
    let (ann, viewers) = viewers(&nodes).await;
    // Cuts off every subscriber of pub/sub, and blocks every publisher.
    let mut deaf = redis::cmd("ACL");
    deaf.arg("SETUSER").arg("default").arg("resetchannels");
    redis.ask::<()>(deaf);
    let mut database = PgConnection::connect(nodes.ledger_url()).await.expect("a connection");
    sqlx::raw_sql(NO_NOTICES).execute(&mut database).await.expect("a superuser may");
    for limit in [2, 3] {
        let harness = &nodes.harnesses[0];
        harness.admin().patch(&ann.plan_path(), Some(json!({ "device_limit": limit }))).await.expect(200);
        let changed = Instant::now();
        let seen = viewers.iter().map(|viewer| viewer.limit_becomes(limit, changed, remembered));
        println!("{:?}", futures_util::future::join_all(seen).await);
    }
    let mut listening = redis::cmd("PUBSUB");
    listening.arg("NUMSUB").arg(CHANNEL);
    assert_eq!(redis.ask::<(String, u64)>(listening), (CHANNEL.to_owned(), 0), "nobody was told");
    drop(nodes.close());
}

/// A node that dies between the commit of a change and its effect leaves the change only in the ledger.
#[tokio::test]
async fn a_change_that_its_node_did_not_live_to_carry_out_reaches_live_sessions_all_the_same() {
    let redis = Redis::start();
    let nodes = Nodes::over(&[redis.url(), redis.url()]);
    let license = nodes.harnesses[0].license(2).await;
    let client = nodes.harnesses[0].client("crowd");
    let session = seat(&client, &license, "machine").await;
    let ann = Subscriber::make(&nodes.harnesses[0].admin(), "ann", 2, "evict").await;
    let tv = json!({ "device_id": "tv", "device_type": "tv" });
    let viewer = nodes.harnesses[0].client("ann");
    viewer.post(DEVICES, tv).await.expect(201);

    let ledger = Ledger::open(Settings::new(nodes.ledger())).await.expect("a ledger");
    let origin = Origin { actor: Actor::System, request: None };
    let write = || Write {
        origin: &origin,
        at: registry_time(),
        idempotency: None,
        home: None,
        expected_version: None,
    };
    let id = license["license_id"].as_str().and_then(|id| id.parse().ok()).map(LicenseId).expect("an id");
    let suspend = LicenseChange { status: Some(Status::Suspended), ..LicenseChange::default() };
    ledger.update_license(&TENANT.into(), id, &suspend, write()).await.expect("a license");
    let changed = Instant::now();
    while client.heartbeat(&session).await.status != 410 {
        assert!(changed.elapsed() < CARRIED_OUT_WITHIN, "the session lives on");
        tokio::time::sleep(PAUSE).await;
    }
    let ended = client.heartbeat(&session).await.expect(410);
    assert_eq!(ended["reason"], "entitlement_ended");
    println!("the session ended {:?} after the change", changed.elapsed());
    ledger.close().await;
    drop((ann, nodes.close()));
}

/// A node that dies between the commit of a plan's change and the invalidation leaves the old plan in the caches. The admin
/// repeats the change at another node.
#[tokio::test]
async fn a_repeated_change_of_a_plan_binds_every_node_though_the_ledger_has_it() {
    let redis = Redis::start();
    let nodes = Nodes::over(&[redis.url(), redis.url(), redis.url()]);
    let (ann, viewers) = viewers(&nodes).await;
    let limits = async || futures_util::future::join_all(viewers.iter().map(Viewer::limit)).await;
    assert_eq!(limits().await, [1; NODES]);

    let ledger = Ledger::open(Settings::new(nodes.ledger())).await.expect("a ledger");
    let origin = Origin { actor: Actor::System, request: None };
    let write =
        Write { origin: &origin, at: registry_time(), idempotency: None, home: None, expected_version: None };
    let (plan, change) = (
        ann.plan.parse().expect("a name"),
        PlanChange { device_limit: Some(Seats(2)), ..PlanChange::default() },
    );
    ledger.update_plan(&TENANT.into(), &plan, change, write).await.expect("a plan");
    ledger.close().await;
    assert_eq!(limits().await, [1; NODES], "nobody is told");

    let repeated = Some(json!({ "device_limit": 2 }));
    nodes.harnesses[0].admin().patch(&ann.plan_path(), repeated).await.expect(200);
    let changed = Instant::now();
    let told = viewers.iter().map(|viewer| viewer.limit_becomes(2, changed, REPEATED_WITHIN));
    println!("{:?}", futures_util::future::join_all(told).await);
    drop(nodes.close());
}

/// Returns the registry time of the test, which is the machine's time.
fn registry_time() -> RegistryTime {
    RegistryTime::from_millis(wall_clock::now().timestamp_millis().unsigned_abs())
}
