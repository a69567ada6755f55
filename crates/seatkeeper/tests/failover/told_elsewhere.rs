//! Events of a session reach a stream at another node while a store is away, or a connection to a store is frozen.

use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::{Memory, Redis};
use serde_json::{Value, json};
use sqlx::{Connection as _, PgConnection};

use super::scene_again::played;
use super::support::{Nodes, busyness, renewed, seated};
use crate::harness::{Client, EventStream};
use crate::until::within;

/// Time limit for an event at one node to reach a stream at another. On a busy machine some events take longer:
/// of several of a kind, one is in time, and all come within the timeout of the stream.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// Time limit of `docs/failover.md` for an event after a connection fell silent without an error.
const TOLD_AFTER_SILENCE: Duration = Duration::from_secs(3);

/// Time limit for a node to serve a bucket after a change of the store.
const SERVED_WITHIN: Duration = Duration::from_secs(60);

/// Time limit for an admin's change while Redis is away: one of several changes is in time.
const CHANGED_WITHIN: Duration = Duration::from_millis(600);

/// A node sends a notice beside a publish that takes longer.
const PUBLISHED_WITHIN: Duration = Duration::from_millis(400);

/// The most by which a time limit is stretched on a busy machine.
const STRETCH_MAX: f64 = 1.5;

/// The connections of the nodes that listen for notices.
const LISTENING: &str = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND state = 'idle'";

/// The connections of the nodes that have sent a notice. A connection that is sending one has a lock on all
/// notices.
const TELLING: &str = "SELECT pid FROM pg_stat_activity WHERE query LIKE '%pg_notify(%' \
    AND pid <> pg_backend_pid() AND datname = current_database() AND state = 'idle'";

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

/// Checks that the next event of a stream has this name, and returns the time since `since`.
async fn hears(stream: &mut EventStream, name: &str, since: Instant) -> Duration {
    let heard = stream.next().await.expect("an event");
    let late = since.elapsed();
    assert_eq!(heard.name, name, "{:#}", heard.data);
    println!("{name} was told after {late:?}");
    late
}

/// Releases each session at the client's node, and returns the times until the streams told the releases.
async fn released(held: &mut [(EventStream, Value)], client: &Client) -> Vec<Duration> {
    let mut late = Vec::new();
    for (stream, session) in held {
        let released = release(client, session).await;
        late.push(hears(stream, "released", released).await);
    }
    late
}

/// Checks that at least one of several events or answers was in time.
fn one_is_in_time(what: &str, late: &[Duration], limit: Duration) {
    assert!(late.iter().any(|late| *late < limit), "none within {limit:?}: {what}: {late:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_at_another_node_go_on_while_redis_is_away() {
    let mut redis = Redis::start();
    let nodes = tokio::task::block_in_place(|| Nodes::over(&[redis.url(), redis.url()]));
    let (license, clients) = (nodes.harnesses[0].license(9).await, nodes.clients());
    let admin = nodes.harnesses[0].admin();
    let (mut carls, carl) = held_with(&license, &clients, &["carl"]).await.remove(0);
    let mut leaving = held_at_the_other_node(&nodes, &["ann", "emil", "flo", "gus"]).await;
    let mut revoked = held_at_the_other_node(&nodes, &["bob", "ben", "bea"]).await;
    let mut staying = held_at_the_other_node(&nodes, &["dora", "dan", "doug"]).await;

    redis.kill();
    // The licenses are in different buckets, and each bucket is served from some time on.
    let held = leaving.iter().chain(&revoked).chain(&staying);
    for session in held.map(|(_, session)| session).chain([&carl]) {
        renewed(&clients[0], session).await;
        renewed(&clients[1], session).await;
    }
    // Either node may record an end, and a stream at that node hears of it in any case.
    one_is_in_time("released", &released(&mut leaving, &clients[0]).await, TOLD_WITHIN);

    let mut late = Vec::new();
    for (stream, session) in &mut revoked {
        let path = format!("/api/v1/admin/sessions/{}", session.as_str().expect("an id"));
        let asked = Instant::now();
        admin.delete(&path).await.expect(204);
        late.push(hears(stream, "revoked", asked).await);
    }
    one_is_in_time("revoked", &late, TOLD_WITHIN);

    let license = format!("/api/v1/admin/licenses/{}", license["license_id"].as_str().expect("an id"));
    let (mut late, mut answered_after) = (Vec::new(), Vec::new());
    for seats in [7, 8, 7] {
        let changed = Instant::now();
        admin.patch(&license, Some(json!({ "max_seats": seats }))).await.expect(200);
        answered_after.push(changed.elapsed());
        late.push(hears(&mut carls, "license_changed", changed).await);
    }
    one_is_in_time("license_changed", &late, TOLD_WITHIN);
    one_is_in_time("an admin waits for a Redis that is away", &answered_after, CHANGED_WITHIN);

    redis.start_again(Memory::Lost);
    nodes.redis_serves_again().await;
    one_is_in_time("released", &released(&mut staying, &clients[0]).await, TOLD_WITHIN);
    drop(nodes.close());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_notice_is_sent_beside_a_redis_that_is_well() {
    played(is_told_by_redis_alone).await;
}

/// Returns `false` if a request took so long that a node may have sent a notice.
async fn is_told_by_redis_alone() -> bool {
    let redis = Redis::start();
    let nodes = tokio::task::block_in_place(|| Nodes::over(&[redis.url(), redis.url()]));
    let clients = nodes.clients();
    let mut slowest = Duration::ZERO;
    let asked = Instant::now();
    let license = nodes.harnesses[0].license(9).await;
    slowest = slowest.max(asked.elapsed());
    let asked = Instant::now();
    let session = seated(&clients[0], &license["license_key"], "ann").await["session_id"].clone();
    slowest = slowest.max(asked.elapsed());
    let mut anns = stream(&clients[1], &session).await;
    let asked = release(&clients[0], &session).await;
    slowest = slowest.max(asked.elapsed());
    hears(&mut anns, "released", asked).await;
    let database = PgConnection::connect(nodes.ledger_url()).await.expect("a connection");
    let telling = Backends(database).when(TELLING, 0).await;
    println!("{} connections have sent a notice; the slowest request took {slowest:?}", telling.len());
    drop(nodes.close());
    assert!(telling.is_empty() || slowest >= PUBLISHED_WITHIN, "a notice beside a Redis that is well");
    telling.is_empty()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_listeners_delay_an_event_by_seconds_at_most() {
    played(is_told_past_frozen_listeners).await;
}

/// Returns `false` if an event came late.
async fn is_told_past_frozen_listeners() -> bool {
    let (server, nodes, mut backends) = over_own_postgres().await;
    let mut held = held_at_the_other_node(&nodes, &["ann", "bob"]).await;
    let frozen = signalled(backends.when(LISTENING, 2).await, Signal::STOP);
    assert!(!frozen.is_empty(), "no node listens");
    let late = released(&mut held, &nodes.harnesses[0].client("crowd")).await;
    signalled(frozen, Signal::CONT);
    drop((nodes.close(), server));
    are_in_time_after_silence(&late)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frozen_tellers_delay_an_event_by_seconds_at_most() {
    played(is_told_past_frozen_tellers).await;
}

/// Returns `false` if an event came late.
async fn is_told_past_frozen_tellers() -> bool {
    let (server, nodes, mut backends) = over_own_postgres().await;
    let mut held = held_at_the_other_node(&nodes, &["ann", "bob", "carl", "dora", "emil"]).await;
    let client = nodes.harnesses[0].client("crowd");
    let (mut frozen, mut late) = (Vec::new(), Vec::new());
    for session in held.chunks_mut(1) {
        let mut telling = backends.when(TELLING, 0).await;
        telling.retain(|pid| !frozen.contains(pid));
        frozen.extend(signalled(telling, Signal::STOP));
        late.extend(released(session, &client).await);
    }
    assert!(!frozen.is_empty(), "no node has sent a notice");
    signalled(frozen, Signal::CONT);
    drop((nodes.close(), server));
    are_in_time_after_silence(&late)
}

fn are_in_time_after_silence(late: &[Duration]) -> bool {
    late.iter().all(|late| *late < stretched(TOLD_AFTER_SILENCE))
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
    held_with(&nodes.harnesses[0].license(9).await, &nodes.clients(), machines).await
}

/// Takes a seat of a license at the first node for each machine, and opens a stream of the session at the
/// second node.
async fn held_with(license: &Value, clients: &[Client], machines: &[&str]) -> Vec<(EventStream, Value)> {
    let mut held = Vec::new();
    for machine in machines {
        let session = seated(&clients[0], &license["license_key"], machine).await["session_id"].clone();
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

/// Sends a signal to server processes, and returns the processes that have not ended before.
fn signalled(mut processes: Vec<i32>, signal: Signal) -> Vec<i32> {
    processes.retain(|pid| {
        let sent = kill_process(Pid::from_raw(*pid).expect("a process id"), signal);
        assert!(matches!(sent, Ok(()) | Err(Errno::SRCH)), "{sent:?}");
        sent.is_ok()
    });
    processes
}
