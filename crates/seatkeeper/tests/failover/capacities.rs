//! Capacities never depend on Redis.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use seatkeeper_testbed::postgres;
use seatkeeper_testbed::redis::{Memory, Redis};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use super::scene_again::{judged, played};
use super::support::{Nodes, answered, signal};
use crate::harness::{Answer, Client, Harness, command};

const CAPACITIES: &str = "/api/v1/capacities/sessions";

/// Takes a capacity for a user.
async fn take(client: &Client, tenant: Uuid, user: Uuid, kind: u8) -> Answer {
    let ask =
        json!({ "tenantObjectId": tenant, "userObjectId": user, "capacityId": tenant, "sessionKind": kind });
    client.put(CAPACITIES, ask).await
}

/// Checks the status of an answer. Returns `Err` with a 503, which only a node that stood still may answer.
fn served(answer: Answer, status: u16) -> Result<Value, String> {
    if answer.status == 503 { Err(format!("{answer:?}")) } else { Ok(answer.expect(status)) }
}

fn path_of(session: &Value) -> String {
    format!("{CAPACITIES}/{}", session.as_str().expect("a session id"))
}

/// Returns the admin path of a session.
fn admin_path_of(session: &Value) -> String {
    format!("/api/v1/admin/sessions/{}", session.as_str().expect("a session id"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn capacities_are_taken_found_and_released_whatever_becomes_of_redis() {
    played(capacities_do_not_need_redis).await;
}

/// Returns `false` if a node stood still.
async fn capacities_do_not_need_redis() -> bool {
    let mut redis = Redis::start();
    let nodes = Nodes::over(&[redis.url(), redis.url()]);
    let (tenant, ann) = (Uuid::new_v4(), Uuid::new_v4());
    let clients: Vec<_> = nodes
        .harnesses
        .iter()
        .map(|harness| Client::new(harness.url(), harness.token_of(&tenant.to_string(), "desk", "service")))
        .collect();
    let first = answered(async || take(&clients[0], tenant, ann, 1).await).await;
    assert!([200, 201].contains(&first.status), "{first:?}");
    let admin = nodes.harnesses[1].token_of(&tenant.to_string(), "ops", "admin");
    let admin = Client::new(nodes.harnesses[1].url(), admin);
    let verdict = outlives_redis(&mut redis, &clients, &admin, tenant, (ann, &first.body["sessionId"])).await;
    judged(nodes, verdict)
}

/// Takes, finds and releases capacities while Redis is away, and after Redis has lost its memory. `first` is
/// the capacity of Ann.
async fn outlives_redis(
    redis: &mut Redis,
    clients: &[Client],
    admin: &Client,
    tenant: Uuid,
    (ann, first): (Uuid, &Value),
) -> Result<(), String> {
    let (ann_at, bob) = (path_of(first), Uuid::new_v4());
    // Capacities are served from the first moment of the outage, before any node notices it.
    redis.kill();
    let mut bobs = Vec::new();
    for _ in 0..20 {
        for client in clients {
            assert_eq!(served(client.get(&ann_at).await, 200)?["isActive"], true);
            assert_eq!(served(admin.get(&admin_path_of(first)).await, 200)?["status"], "active");
            assert_eq!(served(take(client, tenant, ann, 1).await, 200)?["sessionId"], *first);
        }
        let taken = served(take(&clients[1], tenant, bob, 2).await, 201)?;
        bobs.push(taken["sessionId"].clone());
        served(clients[0].delete(&path_of(&taken["sessionId"])).await, 204)?;
        served(clients[1].delete(&path_of(&taken["sessionId"])).await, 404)?;
        tokio::time::sleep(Duration::from_millis(400)).await;
    }

    // The loss of Redis's memory loses no capacity.
    redis.start_again(Memory::Lost);
    let upgraded = served(take(&clients[1], tenant, ann, 3).await, 201)?;
    assert_eq!(upgraded["status"], "upgraded");
    assert_eq!(served(clients[0].get(&ann_at).await, 200)?["endReason"], "upgraded");
    let bob_at = served(clients[0].get(&path_of(&bobs[0])).await, 200)?;
    assert_eq!((&bob_at["isActive"], &bob_at["endReason"]), (&json!(false), &json!("released")));
    served(admin.delete(&admin_path_of(&upgraded["sessionId"])).await, 204)?;
    let upgraded = served(clients[0].get(&path_of(&upgraded["sessionId"])).await, 200)?;
    assert_eq!(upgraded["endReason"], "revoked");
    Ok(())
}

/// A client of a server for the capacities of a tenant.
fn desk(server: &Harness, tenant: Uuid) -> Client {
    Client::new(server.url(), server.token_of(&tenant.to_string(), "desk", "service"))
}

/// Starts a server that keeps the sessions of the nodes' ledger in its memory, with the nodes' key.
fn alone_over(nodes: &Nodes) -> Harness {
    Harness::open_with(&[
        ("LEDGER_URL", nodes.ledger_url()),
        ("AUTH_ALGORITHM", "HS256"),
        ("AUTH_SECRET", "a secret that all nodes of a test know"),
    ])
}

/// Stops a server, which must end without an error.
fn stopped(server: &mut Harness) {
    let (status, log) = tokio::task::block_in_place(|| server.stop());
    assert_eq!(status.code(), Some(0), "{log}");
}

/// Reads a capacity's session.
async fn read(client: &Client, session: &Value) -> Value {
    answered(async || client.get(&path_of(session)).await).await.expect(200)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_find_the_capacities_as_a_single_server_has_left_them() {
    let mut nodes = tokio::task::block_in_place(|| Nodes::in_ledger(1));
    let (tenant, ann, bob) = (Uuid::new_v4(), Uuid::new_v4(), Uuid::new_v4());
    let taken = take(&desk(&nodes.harnesses[0], tenant), tenant, ann, 1).await.expect(201);
    let stays = take(&desk(&nodes.harnesses[0], tenant), tenant, bob, 1).await.expect(201);
    stopped(&mut nodes.harnesses[0]);

    let mut server = tokio::task::block_in_place(|| alone_over(&nodes));
    let client = desk(&server, tenant);
    assert_eq!(take(&client, tenant, bob, 1).await.expect(200)["sessionId"], stays["sessionId"]);
    client.delete(&path_of(&taken["sessionId"])).await.expect(204);
    stopped(&mut server);

    tokio::task::block_in_place(|| nodes.harnesses[0].start());
    let client = desk(&nodes.harnesses[0], tenant);
    assert_eq!(read(&client, &stays["sessionId"]).await["isActive"], true);
    let ended = read(&client, &taken["sessionId"]).await;
    assert_eq!((&ended["isActive"], &ended["endReason"]), (&json!(false), &json!("released")));
    let again = answered(async || take(&client, tenant, ann, 1).await).await.expect(201);
    assert_ne!(again["sessionId"], taken["sessionId"]);
    assert_eq!(take(&client, tenant, bob, 1).await.expect(200)["sessionId"], stays["sessionId"]);
    drop(nodes.close());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_nodes_find_the_capacities_of_the_server_before_them() {
    let database = tokio::task::block_in_place(postgres::database);
    let mut nodes = Nodes::on(database.url());
    let (tenant, ann) = (Uuid::new_v4(), Uuid::new_v4());
    let mut server = tokio::task::block_in_place(|| alone_over(&nodes));
    let taken = take(&desk(&server, tenant), tenant, ann, 1).await.expect(201);
    stopped(&mut server);

    tokio::task::block_in_place(|| (0..2).for_each(|_| nodes.add(&database.url())));
    let clients = [0, 1].map(|node| desk(&nodes.harnesses[node], tenant));
    for client in &clients {
        assert_eq!(read(client, &taken["sessionId"]).await["isActive"], true);
        let found = answered(async || take(client, tenant, ann, 1).await).await.expect(200);
        assert_eq!(found["sessionId"], taken["sessionId"]);
    }
    let admin = nodes.harnesses[1].token_of(&tenant.to_string(), "ops", "admin");
    let admin = Client::new(nodes.harnesses[1].url(), admin);
    answered(async || admin.delete(&admin_path_of(&taken["sessionId"])).await).await.expect(204);
    assert_eq!(read(&clients[0], &taken["sessionId"]).await["endReason"], "revoked");
    drop(nodes.close());
}

/// Longer than a silent node keeps a single server off the ledger: see `docs/failover.md`, "Dead nodes are forgotten".
const FORGOTTEN_AFTER: Duration = Duration::from_secs(8);

/// Waits until no change waits in the database: a single server does not start before. The answer to an admission does not
/// wait for the acknowledgement of the event.
async fn all_acknowledged(nodes: &Nodes) {
    let mut database = PgConnection::connect(nodes.ledger_url()).await.expect("the database is there");
    let waiting = "SELECT count(*) FROM registry.buckets b JOIN registry.acknowledged a USING (bucket)
        WHERE b.position <> a.position";
    let began = Instant::now();
    while sqlx::query_scalar::<_, i64>(waiting).fetch_one(&mut database).await.expect("a count") > 0 {
        assert!(began.elapsed() < REFUSED_WITHIN, "changes wait in the database");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_frozen_serves_no_capacity_beside_a_single_server() {
    let nodes = tokio::task::block_in_place(|| Nodes::in_ledger(1));
    let (tenant, ann) = (Uuid::new_v4(), Uuid::new_v4());
    let late = desk(&nodes.harnesses[0], tenant);
    let taken = take(&late, tenant, ann, 1).await.expect(201);
    all_acknowledged(&nodes).await;
    signal(&nodes.harnesses[0], Signal::STOP);
    tokio::time::sleep(FORGOTTEN_AFTER).await;

    let mut server = tokio::task::block_in_place(|| alone_over(&nodes));
    signal(&nodes.harnesses[0], Signal::CONT);
    let client = desk(&server, tenant);
    for kind in [1, 2, 1, 2] {
        let answer = take(&late, tenant, ann, kind).await;
        assert_eq!(answer.status, 503, "{answer:?}");
    }
    client.delete(&path_of(&taken["sessionId"])).await.expect(204);
    stopped(&mut server);

    let again = answered(async || take(&late, tenant, ann, 1).await).await.expect(201);
    assert_ne!(again["sessionId"], taken["sessionId"]);
    drop(nodes.close());
}

/// Time limit for the end of a server that does not start.
const REFUSED_WITHIN: Duration = Duration::from_secs(60);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_single_server_does_not_start_while_changes_of_capacities_wait_in_the_database() {
    let mut nodes = tokio::task::block_in_place(|| Nodes::in_ledger(1));
    let (tenant, ann) = (Uuid::new_v4(), Uuid::new_v4());
    take(&desk(&nodes.harnesses[0], tenant), tenant, ann, 1).await.expect(201);
    tokio::task::block_in_place(|| nodes.harnesses[0].stop());
    let mut database = PgConnection::connect(nodes.ledger_url()).await.expect("the database is there");
    let wait = "UPDATE registry.buckets SET position = position + $1 WHERE bucket = 300";
    sqlx::query(wait).bind(1_i64).execute(&mut database).await.expect("an event waits");
    let server = command(&[("SEATKEEPER_LEDGER_URL".to_owned(), nodes.ledger_url().to_owned())]);
    let mut server = tokio::process::Command::from(server);
    let tried = server.args(["serve", "--listen", "127.0.0.1:0"]).kill_on_drop(true).output();
    let tried = tokio::time::timeout(REFUSED_WITHIN, tried).await.expect("the server does not start");
    let tried = tried.expect("the server can be run");
    let told = String::from_utf8_lossy(&tried.stderr);
    assert!(!tried.status.success() && told.contains("1 changes of capacities"), "{told}");
    sqlx::query(wait).bind(-1_i64).execute(&mut database).await.expect("no event waits");
    tokio::task::block_in_place(|| nodes.harnesses[0].start());
    drop(nodes.close());
}
