//! Nodes that share only a PostgreSQL.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use seatkeeper_testbed::postgres::{self, Postgres, Stop};
use serde_json::json;
use sqlx::Connection as _;
use uuid::Uuid;

use super::support::{Nodes, answered, denied, ended, released, renewed, seat, seated};
use crate::harness::{Client, EventStream, Harness, run};
use crate::support::subscriber::Subscriber;

const DEVICES: &str = "/api/v1/devices/sessions";
const CAPACITIES: &str = "/api/v1/capacities/sessions";

#[tokio::test]
async fn nodes_over_the_ledger_alone_serve_all_kinds_and_each_goes_on_for_the_others() {
    let mut nodes = Nodes::in_ledger(3);
    let (license, clients) = (nodes.harnesses[0].license(4).await, nodes.clients());
    let ann = seat(&clients[0], &license, "ann").await;
    let key = &license["license_key"];

    let rush = (0..12).map(|number| {
        let client = &clients[number % clients.len()];
        async move { client.acquire(key, &format!("machine-{number}")).await.status }
    });
    let mut statuses = join_all(rush).await;
    statuses.sort_unstable();
    assert_eq!(statuses, [[201; 3].as_slice(), &[403; 9]].concat());

    let watch = async |client: &Client, device: &str| {
        let ask = json!({ "device_id": device, "device_type": "tv", "device_name": device });
        client.post(DEVICES, ask).await.expect(201)["session_id"].clone()
    };
    let tv = watch(&clients[0], "tv").await;
    let phone = watch(&clients[1], "phone").await;
    let heartbeat = format!("{DEVICES}/heartbeat");
    clients[2].post(&heartbeat, json!({ "session_id": tv })).await.expect(410);
    clients[2].post(&heartbeat, json!({ "session_id": phone })).await.expect(204);

    let tenant = Uuid::new_v4();
    let token = nodes.harnesses[0].token_of(&tenant.to_string(), "desk", "service");
    let capacity = json!({
        "tenantObjectId": tenant, "userObjectId": tenant, "capacityId": tenant, "sessionKind": 1,
    });
    let desks: Vec<_> = clients.iter().map(|client| Client::new(client.url(), token.clone())).collect();
    let taken = desks[0].put(CAPACITIES, capacity.clone()).await.expect(201);
    assert_eq!(desks[1].put(CAPACITIES, capacity).await.expect(200)["sessionId"], taken["sessionId"]);

    // An admin names a session without its kind.
    for session in [&taken["sessionId"], &phone, &ann] {
        let path = format!("/api/v1/admin/sessions/{}", session.as_str().expect("a session id"));
        let tenant = if session == &taken["sessionId"] { tenant.to_string() } else { "default".to_owned() };
        let admin = Client::new(clients[2].url(), nodes.harnesses[2].token_of(&tenant, "ops", "admin"));
        admin.delete(&path).await.expect(204);
        admin.delete(&path).await.expect(404);
    }
    ended(&clients[1], &ann).await;
    let bob = seat(&clients[0], &license, "bob").await;

    nodes.harnesses[0].kill();
    clients[1].get("/readyz").await.expect(200);
    renewed(&clients[1], &bob).await;
    denied(&clients[2], key, "carl").await;
    released(&clients[2], &bob).await;
    seated(&clients[1], key, "carl").await;
    nodes.harnesses[0].start();
    nodes.close();
}

#[tokio::test]
async fn a_postgresql_that_crashes_takes_no_seat_along() {
    let server = Postgres::start();
    let database = server.url("postgres");
    let mut node = Harness::open_with(&[("REGISTRY_URL", &database), ("LEDGER_URL", &database)]);
    let (license, client) = (node.license(2).await, node.client("crowd"));
    let ann = seat(&client, &license, "ann").await;
    // Longer than any node waits before a registry counts as unreachable.
    for away in [Duration::ZERO, Duration::from_secs(5)] {
        server.stop(Stop::Immediate);
        client.acquire(&license["license_key"], "bob").await.expect(503);
        tokio::time::sleep(away).await;
        if away > Duration::ZERO {
            client.get("/readyz").await.expect(503);
        }
        server.start_again();
        let bob = answered(async || client.acquire(&license["license_key"], "bob").await).await;
        assert!([200, 201].contains(&bob.status), "{:#}", bob.body);
        renewed(&client, &ann).await;
        denied(&client, &license["license_key"], "carl").await;
        released(&client, &bob.body["session_id"]).await;
    }
    node.stop();
    node.prove();
}

#[test]
fn live_sessions_are_in_no_other_postgresql_than_the_ledger() {
    let (ledger, other) = (postgres::database(), postgres::database());
    for ledger in [Some(ledger.url()), None] {
        let other = other.url();
        let mut args = vec!["serve", "--registry", &other, "--listen", "127.0.0.1:0"];
        args.extend(ledger.iter().flat_map(|url| ["--ledger", url]));
        let output = run(&args);
        assert!(!output.status.success());
        assert!(output.stderr.contains("the ledger's own database"), "{}", output.stderr);
    }
}

/// Time limit for an event at one node to reach listeners at another. On a busy machine some events take
/// longer: one of [`CHANGES_MAX`] is in time, and all come within the timeout of the stream.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// The most changes until the events of a change are told in time.
const CHANGES_MAX: usize = 5;

/// The database connections that listen for notifications.
const LISTENING: &str = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' ORDER BY pid";

/// Checks that events of one node reach a listener at another node within a second. `limits` are for the
/// changes of the plan.
async fn is_told_of_at_once(
    clients: &[Client],
    admin: &Client,
    ann: &Subscriber,
    limits: &mut impl Iterator<Item = u64>,
) {
    let mut late = Vec::new();
    for limit in limits.take(CHANGES_MAX) {
        let told = told_after(clients, admin, ann, limit).await;
        if told < TOLD_WITHIN {
            return;
        }
        late.push(told);
    }
    panic!("no change was told within {TOLD_WITHIN:?}: {late:?}");
}

/// Changes a plan and supersedes a session at the first node, and returns the longer of the times until a
/// stream at the second node had told the events.
async fn told_after(clients: &[Client], admin: &Client, ann: &Subscriber, limit: u64) -> Duration {
    let tv = async |client: &Client| {
        let ask = json!({ "device_id": "tv", "device_type": "tv" });
        let answer = answered(async || client.post(DEVICES, ask.clone()).await).await;
        answer.expect(201)["session_id"].clone()
    };
    let session = tv(&clients[0]).await;
    let events = format!("{DEVICES}/{}/events", session.as_str().expect("an id"));
    let mut stream = EventStream::open(&clients[1], &events, None).await.expect("a stream");

    admin.patch(&ann.plan_path(), Some(json!({ "device_limit": limit }))).await.expect(200);
    let changed = Instant::now();
    let heard = stream.next().await.expect("an event");
    assert_eq!((&*heard.name, &heard.data["device_limit"]), ("plan_changed", &json!(limit)));
    let told_of_plan = changed.elapsed();

    // The same device claims again at the first node.
    tv(&clients[0]).await;
    let superseded = Instant::now();
    assert_eq!(stream.next().await.expect("an event").name, "superseded");
    let told_of_session = superseded.elapsed();
    println!("told of a plan after {told_of_plan:?}, and of a session after {told_of_session:?}");
    told_of_plan.max(told_of_session)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_happens_at_one_node_is_told_at_another_within_a_second() {
    let server = Postgres::start();
    let mut nodes = Nodes::on(server.url("postgres"));
    tokio::task::block_in_place(|| (0..2).for_each(|_| nodes.add(&server.url("postgres"))));
    let admin = nodes.harnesses[0].admin();
    let ann = Subscriber::make(&admin, "ann", 3, "evict").await;
    let clients: Vec<_> = nodes.harnesses.iter().map(|harness| harness.client("ann")).collect();
    let mut database = sqlx::PgConnection::connect(&server.url("postgres")).await.expect("a connection");
    let started = Instant::now();
    let mut listening = async |but: &[i32]| loop {
        let pids: Vec<i32> =
            sqlx::query_scalar(LISTENING).fetch_all(&mut database).await.expect("connections");
        if pids.len() == nodes.harnesses.len() && !pids.iter().any(|pid| but.contains(pid)) {
            return pids;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "not all nodes listen: {pids:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let first = listening(&[]).await;
    let mut limits = 4..;
    is_told_of_at_once(&clients, &admin, &ann, &mut limits).await;

    // Listeners reconnect after losing their connections.
    let mut killer = sqlx::PgConnection::connect(&server.url("postgres")).await.expect("a connection");
    for pid in &first {
        let ended = sqlx::query("SELECT pg_terminate_backend($1)").bind(pid).execute(&mut killer).await;
        ended.expect("a superuser may");
    }
    listening(&first).await;
    is_told_of_at_once(&clients, &admin, &ann, &mut limits).await;
    drop(nodes.close());
}
