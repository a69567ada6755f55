//! A rebuild breaks off between the raise of the epoch and the replay of the old epoch's journal. Answers by
//! `durability = "journal"` wait in that journal alone, so a later rebuild must replay it: a locked audit log keeps
//! every rebuild from its replay.

use std::time::Duration;

use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::{Memory, Redis, RedisSetup};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, PgConnection};

use super::support::{Nodes, SERVED_WAIT_MAX, answered, epochs_per_bucket, renewed, seat};
use crate::harness::Client;
use crate::support::books::opened;
use crate::until::within;

/// Licenses are admitted without a commit.
const JOURNAL: &[(&str, &str)] = &[("LICENSES_DURABILITY", "journal")];

/// Events cannot be recorded, and can be read.
const NO_RECORDS: &str = "audit_log IN SHARE MODE";

/// Events can be neither recorded nor read. Every rebuild fails at the first step after `begin`.
const NO_READS: &str = "audit_log IN ACCESS EXCLUSIVE MODE";

/// Rebuilds that break off one after another: each takes the lock timeout of 5 s, and a pause of 2 s.
const BROKEN_OFF: u64 = 3;

const WAIT_MAX: Duration = SERVED_WAIT_MAX;

const PAUSE: Duration = Duration::from_millis(20);

/// A node over a PostgreSQL of its own. Carl has one of the two seats of a license, and is on record.
struct Scene {
    server: Postgres,
    operator: PgConnection,
    nodes: Nodes,
    license: Value,
    carl: Value,
}

impl Scene {
    async fn open(redis: &str) -> Self {
        let server = tokio::task::block_in_place(Postgres::start);
        let mut nodes = Nodes::on_with(server.url("postgres"), JOURNAL);
        tokio::task::block_in_place(|| nodes.add(redis));
        let operator = PgConnection::connect(&server.url("postgres")).await.expect("a connection");
        let license = nodes.harnesses[0].license(2).await;
        let carl = seat(&nodes.clients()[0], &license, "carl").await;
        Self { server, operator, nodes, license, carl }
    }

    fn client(&self) -> Client {
        self.nodes.clients().pop().expect("a node")
    }

    /// Locks the audit log, once every event so far is on record.
    async fn lock(&mut self, lock: &str) {
        let ledger = opened(self.nodes.ledger()).await;
        let id = self.carl.as_str().and_then(|id| id.parse().ok()).expect("a session id");
        within(WAIT_MAX, "carl is on record", async || {
            tokio::time::sleep(PAUSE).await;
            let session = ledger.session(id).await.expect("an answer");
            session.map(drop).ok_or_else(String::new)
        })
        .await;
        let lock = format!("BEGIN; LOCK TABLE {lock}");
        self.operator.execute(AssertSqlSafe(lock)).await.expect("the lock");
    }

    async fn unlock(&mut self) {
        self.operator.execute("ROLLBACK").await.expect("the end of the lock");
    }

    /// Ends the statements of a dead node, which PostgreSQL would carry out after the end of the lock, and the bucket
    /// locks, which would delay the next rebuild by 30 s.
    async fn end_statements_and_bucket_locks(&self) {
        let mut other = PgConnection::connect(&self.server.url("postgres")).await.expect("a connection");
        for statement in [
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'seatkeeper'",
            "DELETE FROM bucket_locks",
        ] {
            other.execute(statement).await.expect("PostgreSQL obeys");
        }
    }

    /// Gives ann the other seat. Her admission waits in the journal.
    async fn admit_ann(&self) -> Value {
        seat(&self.client(), &self.license, "ann").await
    }

    /// Waits until a bucket was raised `raises` times since `before`. Meanwhile ann is never told that her session is
    /// over or unknown.
    async fn are_raised(&self, raises: u64, before: &[u64], ann: &Value) {
        let client = self.client();
        within(WAIT_MAX, "rebuilds break off", async || {
            tokio::time::sleep(PAUSE).await;
            let beat = client.heartbeat(ann).await;
            assert!([200, 503].contains(&beat.status), "an answered admission is lost: {beat:?}");
            let raised = self.nodes.raised(before).await;
            if raised >= raises { Ok(()) } else { Err(format!("{raised} raises")) }
        })
        .await;
    }

    /// Waits until the ledger names `mode` for every bucket.
    async fn are_in(&self, mode: BucketMode) {
        let ledger = opened(self.nodes.ledger()).await;
        within(WAIT_MAX, "buckets change their mode", async || {
            tokio::time::sleep(PAUSE).await;
            let rows = ledger.buckets().await.expect("the buckets");
            let others = rows.iter().filter(|row| row.mode != mode).count();
            if others == 0 { Ok(()) } else { Err(format!("{others} buckets are in another mode")) }
        })
        .await;
    }

    /// Ends the lock. Checks that carl and ann keep their seats, and that bob gets no seat.
    async fn nobody_lost_a_seat(mut self, ann: &Value) {
        self.unlock().await;
        let client = self.client();
        renewed(&client, ann).await;
        renewed(&client, &self.carl).await;
        let bob = answered(async || client.acquire(&self.license["license_key"], "bob").await).await;
        bob.expect(403);
        drop(self.nodes.close());
        drop(self.server);
    }
}

/// Starts a Redis that keeps its memory over a restart.
fn lasting_redis() -> Redis {
    RedisSetup::default().setting("appendonly yes").setting("appendfsync always").start()
}

/// Restarts Redis with its memory. The identity of the memory is new, so every bucket is rebuilt.
fn restart(redis: &mut Redis) {
    tokio::task::block_in_place(|| {
        redis.kill();
        redis.start_again(Memory::OnDisk);
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journal_outlives_rebuilds_that_break_off() {
    let mut redis = lasting_redis();
    let mut scene = Scene::open(&redis.url()).await;
    scene.lock(NO_RECORDS).await;
    let ann = scene.admit_ann().await;
    let before = epochs_per_bucket(&scene.nodes).await;
    restart(&mut redis);
    scene.are_raised(BROKEN_OFF, &before, &ann).await;
    scene.nobody_lost_a_seat(&ann).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journal_outlives_a_node_that_is_killed_before_its_replay() {
    let mut redis = lasting_redis();
    let mut scene = Scene::open(&redis.url()).await;
    scene.lock(NO_RECORDS).await;
    let ann = scene.admit_ann().await;
    let before = epochs_per_bucket(&scene.nodes).await;
    restart(&mut redis);
    scene.are_raised(1, &before, &ann).await;
    scene.nodes.kill(0);
    scene.nodes.harnesses.clear();
    scene.end_statements_and_bucket_locks().await;
    tokio::task::block_in_place(|| scene.nodes.add(&redis.url()));
    scene.nobody_lost_a_seat(&ann).await;
}

/// Starts a Redis, a proxy before the Redis, and a node behind the proxy.
async fn behind_proxy() -> (Redis, Proxy, Scene) {
    let redis = Redis::start();
    let to_redis = Proxy::start(([127, 0, 0, 1], redis.port()).into(), 0).await;
    let scene = Scene::open(&format!("redis://{}", to_redis.address())).await;
    (redis, to_redis, scene)
}

/// The standby served last, and a return to Redis breaks off.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journal_of_the_standby_outlives_returns_that_break_off() {
    let (_redis, to_redis, mut scene) = behind_proxy().await;
    to_redis.set(Network::Silent);
    scene.are_in(BucketMode::Ledger).await;
    renewed(&scene.client(), &scene.carl).await;
    scene.lock(NO_RECORDS).await;
    let ann = scene.admit_ann().await;
    let before = epochs_per_bucket(&scene.nodes).await;
    to_redis.set(Network::Well);
    scene.are_raised(BROKEN_OFF, &before, &ann).await;
    scene.nobody_lost_a_seat(&ann).await;
}

/// Redis served last. A fallback breaks off before the standby serves, and then Redis is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_journal_outlives_a_fallback_that_breaks_off() {
    let (_redis, to_redis, mut scene) = behind_proxy().await;
    scene.lock(NO_READS).await;
    let ann = scene.admit_ann().await;
    to_redis.set(Network::Silent);
    scene.are_in(BucketMode::Ledger).await;
    to_redis.set(Network::Well);
    scene.are_in(BucketMode::Registry).await;
    scene.nobody_lost_a_seat(&ann).await;
}
