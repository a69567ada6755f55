//! Events of a session reach a stream at another node while a store is away, or a connection to a store is frozen.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::{Memory, Redis};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

use super::support::{Nodes, busyness, renewed, seat};
use crate::harness::{Client, EventStream};
use crate::until::within;

/// Time limit for an event at one node to reach a stream at another.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// Time limit of `docs/failover.md` for an event after a connection fell silent without an error.
const TOLD_AFTER_SILENCE: Duration = Duration::from_secs(3);

/// Time limit for a node to serve a bucket after a change of the store.
const SERVED_WITHIN: Duration = Duration::from_secs(60);

/// The most by which a time limit is stretched on a busy machine.
const STRETCH_MAX: f64 = 1.5;

/// The connections of the nodes that listen for notices.
const LISTENING: &str = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%'";

/// The connections of the nodes that have sent a notice.
const TELLING: &str = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_notify(%' \
    AND pid <> pg_backend_pid() AND datname = current_database()";

fn stretched(limit: Duration) -> Duration {
    limit.mul_f64(busyness().min(STRETCH_MAX))
}

/// Releases a session, and returns the begin of the request that the node carried out. A node answers 503 while a bucket is
/// rebuilt.
async fn release(client: &Client, session: &Value) -> Instant {
    within(SERVED_WITHIN, "the session is released", async || {
        let asked = Instant::now();
        let answer = client.release(session).await;
        match answer.status {
            // An attempt that was answered 503 may have released the session.
            204 | 404 => Ok(asked),
            503 => Err(answer.body.to_string()),
            status => panic!("a release was answered with {status}: {:#}", answer.body),
        }
    })
    .await
}

/// Opens a stream of a license session.
async fn stream(client: &Client, session: &Value) -> EventStream {
    let path = format!("/api/v1/licenses/sessions/{}/events", session.as_str().expect("an id"));
    EventStream::open(client, &path, None).await.expect("a stream")
}

/// Checks that the next event of a stream has this name, and comes in time after `since`.
async fn hears(stream: &mut EventStream, name: &str, since: Instant, limit: Duration) {
    let heard = stream.next().await.expect("an event");
    let late = since.elapsed();
    assert_eq!(heard.name, name, "{:#}", heard.data);
    println!("{name} was told after {late:?}");
    assert!(late < stretched(limit), "{name} was told after {late:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_at_another_node_go_on_while_redis_is_away() {
    let mut redis = Redis::start();
    let nodes = tokio::task::block_in_place(|| Nodes::over(&[redis.url(), redis.url()]));
    let (license, clients) = (nodes.harnesses[0].license(9).await, nodes.clients());
    let admin = nodes.harnesses[0].admin();
    let (bob, carl) = (seat(&clients[0], &license, "bob").await, seat(&clients[0], &license, "carl").await);
    let (mut bobs, mut carls) = (stream(&clients[1], &bob).await, stream(&clients[1], &carl).await);
    let mut others = held_at_the_other_node(&nodes, &["ann", "emil", "flo", "gus"]).await;
    let (mut hals, hal) = held_at_the_other_node(&nodes, &["hal"]).await.remove(0);
    let released = Instant::now();
    clients[0].release(&hal).await.expect(204);
    hears(&mut hals, "released", released, TOLD_WITHIN).await;
    let database = PgConnection::connect(nodes.ledger_url()).await.expect("a connection");
    assert!(Backends(database).when(TELLING, 0).await.is_empty(), "a notice beside a Redis that is well");

    redis.kill();
    // The licenses are in different buckets, and each bucket is served from some time on.
    for session in others.iter().map(|(_, session)| session).chain([&bob]) {
        renewed(&clients[0], session).await;
        renewed(&clients[1], session).await;
    }
    // Either node may record an end, and a stream at that node hears of it in any case.
    for (stream, session) in &mut others {
        let released = release(&clients[0], session).await;
        hears(stream, "released", released, TOLD_WITHIN).await;
    }

    let path = format!("/api/v1/admin/sessions/{}", bob.as_str().expect("an id"));
    let revoked = Instant::now();
    admin.delete(&path).await.expect(204);
    hears(&mut bobs, "revoked", revoked, TOLD_WITHIN).await;

    let license = format!("/api/v1/admin/licenses/{}", license["license_id"].as_str().expect("an id"));
    let changed = Instant::now();
    admin.patch(&license, Some(json!({ "max_seats": 7 }))).await.expect(200);
    let answered_after = changed.elapsed();
    hears(&mut carls, "license_changed", changed, TOLD_WITHIN).await;
    let limit = stretched(Duration::from_millis(600));
    assert!(answered_after < limit, "an admin waited {answered_after:?} for a Redis that is away");

    redis.start_again(Memory::Lost);
    nodes.redis_serves_again().await;
    renewed(&clients[0], &carl).await;
    let released = release(&clients[0], &carl).await;
    hears(&mut carls, "released", released, TOLD_WITHIN).await;
    drop(nodes.close());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_listeners_delay_an_event_by_seconds_at_most() {
    let (server, nodes, mut backends) = over_own_postgres().await;
    let mut held = held_at_the_other_node(&nodes, &["ann", "bob"]).await;
    let client = nodes.harnesses[0].client("crowd");
    let frozen = backends.when(LISTENING, 2).await;
    signal(&frozen, Signal::STOP);
    for (stream, session) in &mut held {
        let released = Instant::now();
        client.release(session).await.expect(204);
        hears(stream, "released", released, TOLD_AFTER_SILENCE).await;
    }
    signal(&frozen, Signal::CONT);
    drop((nodes.close(), server));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_tellers_delay_an_event_by_seconds_at_most() {
    let (server, nodes, mut backends) = over_own_postgres().await;
    let mut held = held_at_the_other_node(&nodes, &["ann", "bob", "carl", "dora", "emil"]).await;
    let client = nodes.harnesses[0].client("crowd");
    let mut frozen = Vec::new();
    for (stream, session) in &mut held {
        let mut telling = backends.when(TELLING, 0).await;
        telling.retain(|pid| !frozen.contains(pid));
        signal(&telling, Signal::STOP);
        frozen.extend(telling);
        let released = Instant::now();
        client.release(session).await.expect(204);
        hears(stream, "released", released, TOLD_AFTER_SILENCE).await;
    }
    assert!(!frozen.is_empty(), "no node has sent a notice");
    signal(&frozen, Signal::CONT);
    drop((nodes.close(), server));
}

/// Starts two nodes over a PostgreSQL of their own alone.
async fn over_own_postgres() -> (Postgres, Nodes, Backends) {
    let server = tokio::task::block_in_place(Postgres::start);
    let mut nodes = Nodes::on(server.url("postgres"));
    tokio::task::block_in_place(|| (0..2).for_each(|_| nodes.add(&server.url("postgres"))));
    let connection = PgConnection::connect(&server.url("postgres")).await.expect("a connection");
    (server, nodes, Backends(connection))
}

/// Takes a seat at the first node for each machine, and opens a stream of the session at the second node.
async fn held_at_the_other_node(nodes: &Nodes, machines: &[&str]) -> Vec<(EventStream, Value)> {
    let (license, clients) = (nodes.harnesses[0].license(9).await, nodes.clients());
    let mut held = Vec::new();
    for machine in machines {
        let session = seat(&clients[0], &license, machine).await;
        held.push((stream(&clients[1], &session).await, session));
    }
    held
}

/// The server processes of the nodes' connections to PostgreSQL.
struct Backends(PgConnection);

impl Backends {
    /// Waits until a query finds at least `count` processes, and returns the processes.
    async fn when(&mut self, query: &'static str, count: usize) -> Vec<i32> {
        within(Duration::from_secs(30), "connections are there", async || {
            let pids: Vec<i32> = sqlx::query_scalar(query).fetch_all(&mut self.0).await.expect("connections");
            if pids.len() >= count { Ok(pids) } else { Err(format!("{pids:?}")) }
        })
        .await
    }
}

/// Sends a signal to server processes.
fn signal(processes: &[i32], signal: Signal) {
    for pid in processes {
        let process = Pid::from_raw(*pid).expect("a process id");
        kill_process(process, signal).expect("a process that runs");
    }
}
