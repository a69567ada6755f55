//! Clock steps: the clock of PostgreSQL's host, or of a node, is set while two nodes serve a storm. No
//! machine may lose its seat, no answer may be lost, and no wrong time may be recorded.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;
use seatkeeper_testbed::clock::Clock;
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::Redis;
use sqlx::Connection as _;
use tokio::sync::SemaphorePermit;

use super::steady::{Manner, Steady, storm_permit};
use super::support::{Nodes, answered, renewed, seat, signal};
use crate::support::knobs;
use crate::support::scene::License;
use crate::until::within;

/// The number of admissions that shows a healthy service.
const WELL: u64 = 30;

const STEP: Duration = Duration::from_secs(400);

const DECADE: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Longer than a clock takes to settle, and than the clock's lease.
const LONG: Duration = Duration::from_secs(12);

/// The TTL of the storm's sessions.
const TTL_SECONDS: u64 = 20;

/// The TTL of a session outside the storm.
const SHORT_TTL: Duration = Duration::from_secs(4);

/// The TTL of a session during a freeze of all nodes for [`LONG`].
const FROZEN_TTL: Duration = Duration::from_secs(10);

/// Time limit for PostgreSQL's registry time to run on, once the clock is right again or has settled.
const RUNS_ON_WITHIN: Duration = Duration::from_secs(20);

/// Two nodes over a PostgreSQL whose clock is set by the test.
struct Stage {
    nodes: Nodes,
    clock: Arc<Clock>,
    database: String,
    // Dropped together with the stage.
    redis: Option<Redis>,
    _postgres: Postgres,
}

impl Stage {
    /// Starts nodes without Redis.
    fn alone() -> Self {
        Self::with(None)
    }

    /// Starts nodes with licenses and devices in Redis, and capacities in PostgreSQL.
    fn beside_redis() -> Self {
        Self::with(Some(Redis::start()))
    }

    fn with(redis: Option<Redis>) -> Self {
        tokio::task::block_in_place(|| {
            let clock = Arc::new(Clock::new());
            let postgres = Postgres::start_by(&clock);
            let database = postgres.url("postgres");
            let mut stage =
                Self { nodes: Nodes::on(database.clone()), clock, database, redis, _postgres: postgres };
            (0..2).for_each(|_| stage.add_node());
            stage
        })
    }

    fn add_node(&mut self) {
        let registry = self.registry();
        self.nodes.add(&registry);
    }

    fn registry(&self) -> String {
        self.redis.as_ref().map_or_else(|| self.database.clone(), Redis::url)
    }

    async fn storm(&self) -> Storm {
        let permit = storm_permit().await;
        let manner = Manner { ttl_seconds: TTL_SECONDS, pinned: false, seed: knobs::seed() };
        let mut storm = Storm { steady: Steady::begin(&self.nodes, manner).await, _permit: permit };
        storm.is_well().await;
        storm
    }

    /// Ends the storm, and compares the latest recorded time with the machine's clock.
    async fn end(self, storm: Storm, ahead_max: Duration) {
        let ahead = self.nodes.last_recorded().await.saturating_sub(now());
        assert!(ahead <= ahead_max, "the record is {ahead:?} ahead of the clock");
        storm.steady.end(self.nodes).await;
    }

    /// Waits until registry time in PostgreSQL runs at the pace of the machine's clock.
    async fn runs_on(&self) {
        let mut database = sqlx::PgConnection::connect(&self.database).await.expect("a connection");
        within(RUNS_ON_WITHIN, "registry time runs on", async || {
            let trusted: bool =
                sqlx::query_scalar("SELECT registry.clock() <= trusted_until FROM registry.told")
                    .fetch_one(&mut database)
                    .await
                    .expect("the row of the clock");
            tokio::time::sleep(Duration::from_millis(50)).await;
            if trusted { Ok(()) } else { Err("the clock is not trusted".to_owned()) }
        })
        .await;
    }
}

struct Storm {
    steady: Steady,
    _permit: SemaphorePermit<'static>,
}

impl Storm {
    async fn is_well(&mut self) {
        self.steady.goes_on(WELL).await;
    }
}

#[expect(clippy::disallowed_methods, reason = "it decides nothing; the record is compared with it")]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970")
}

/// Steps the clock forward during a storm. Registry time stands still, and runs on once the clock has
/// settled.
async fn postgresql_is_stepped_forward(stage: Stage) {
    let mut storm = stage.storm().await;
    stage.clock.advance(STEP);
    storm.is_well().await;
    stage.runs_on().await;
    storm.is_well().await;
    stage.end(storm, STEP).await;
}

/// Steps the clock back during a storm, and forward again. Registry time stands still in between.
async fn postgresql_is_stepped_back(stage: Stage) {
    let mut storm = stage.storm().await;
    stage.clock.set_back(STEP);
    storm.is_well().await;
    tokio::time::sleep(LONG).await;
    storm.is_well().await;
    stage.clock.advance(STEP);
    storm.is_well().await;
    stage.runs_on().await;
    storm.is_well().await;
    stage.end(storm, Duration::ZERO).await;
}

/// Sets the clock ten years ahead, for a second and for longer than a clock takes to settle.
async fn postgresql_shows_another_decade(stage: Stage) {
    let mut storm = stage.storm().await;
    for shown in [Duration::from_secs(1), LONG] {
        stage.clock.advance(DECADE);
        tokio::time::sleep(shown).await;
        storm.is_well().await;
        stage.clock.set_back(DECADE);
        storm.is_well().await;
        stage.runs_on().await;
    }
    storm.is_well().await;
    stage.end(storm, Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_postgresql_alone_is_stepped_forward() {
    postgresql_is_stepped_forward(Stage::alone()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_postgresql_alone_is_stepped_back() {
    postgresql_is_stepped_back(Stage::alone()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_postgresql_alone_shows_another_decade() {
    postgresql_shows_another_decade(Stage::alone()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_postgresql_beside_redis_is_stepped_forward() {
    postgresql_is_stepped_forward(Stage::beside_redis()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_postgresql_beside_redis_is_stepped_back() {
    postgresql_is_stepped_back(Stage::beside_redis()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_postgresql_beside_redis_shows_another_decade() {
    postgresql_shows_another_decade(Stage::beside_redis()).await;
}

/// A session keeps its seat over a clock jump, and frees the seat one TTL after time runs on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_has_a_full_ttl_after_a_jump_and_then_expires() {
    let stage = Stage::alone();
    let (admin, clients) = (stage.nodes.harnesses[0].admin(), stage.nodes.clients());
    let license = License::make(&admin, 1, Some(SHORT_TTL.as_secs())).await;
    let ann = clients[0].acquire(&license.key, "ann").await.expect(201)["session_id"].clone();
    // By this time both nodes have read the clock and keep renewing the lease.
    tokio::time::sleep(Duration::from_secs(1)).await;
    renewed(&clients[1], &ann).await;
    stage.clock.advance(STEP);
    let denied = answered(async || clients[1].acquire(&license.key, "bob").await).await;
    denied.expect(403);
    stage.runs_on().await;
    let ran_on = Instant::now();
    answered(async || clients[1].acquire(&license.key, "bob").await).await.expect(403);
    renewed(&clients[1], &ann).await;
    within(RUNS_ON_WITHIN, "the silent session expires", async || {
        let answer = answered(async || clients[0].acquire(&license.key, "bob").await).await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        if answer.status == 201 { Ok(()) } else { Err(answer.status.to_string()) }
    })
    .await;
    assert!(ran_on.elapsed() >= SHORT_TTL - Duration::from_millis(500), "{:?}", ran_on.elapsed());
    drop(stage.nodes.close());
}

/// All nodes are frozen for longer than a session's TTL. The holders could not heartbeat, so no session
/// expires.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_nodes_over_postgresql_are_frozen_for_longer_than_a_session_lasts() {
    let stage = Stage::alone();
    let (admin, clients) = (stage.nodes.harnesses[0].admin(), stage.nodes.clients());
    let license = License::make(&admin, 2, Some(FROZEN_TTL.as_secs())).await;
    let keys = serde_json::json!({ "license_key": license.key });
    let seats = [seat(&clients[0], &keys, "ann").await, seat(&clients[1], &keys, "bob").await];
    tokio::time::sleep(Duration::from_secs(1)).await;
    for session in &seats {
        renewed(&clients[0], session).await;
    }
    stage.nodes.harnesses.iter().for_each(|node| signal(node, Signal::STOP));
    tokio::time::sleep(LONG).await;
    stage.nodes.harnesses.iter().for_each(|node| signal(node, Signal::CONT));
    // While registry time stands still, no session expires anyway.
    stage.runs_on().await;
    answered(async || clients[0].acquire(&license.key, "carl").await).await.expect(403);
    for session in &seats {
        renewed(&clients[1], session).await;
    }
    drop(stage.nodes.close());
}

/// A node on a host with a wrong time serves a storm together with the other nodes.
async fn a_node_is_stepped(mut stage: Stage) {
    let clock = Arc::new(Clock::new());
    let registry = stage.registry();
    tokio::task::block_in_place(|| stage.nodes.add_in(&clock.environment(), &registry));
    let mut storm = stage.storm().await;
    for set in [Clock::advance, Clock::set_back, Clock::set_back] {
        set(&clock, STEP);
        storm.is_well().await;
    }
    stage.end(storm, Duration::ZERO).await;
}

/// A node with a clock ten years ahead refuses every token as expired. Leases and rebuilds go on.
async fn a_node_shows_another_decade(mut stage: Stage) {
    let mut storm = stage.storm().await;
    let clock = Arc::new(Clock::new());
    let registry = stage.registry();
    tokio::task::block_in_place(|| stage.nodes.add_in(&clock.environment(), &registry));
    storm.is_well().await;
    for shown in [Duration::from_secs(1), LONG] {
        clock.advance(DECADE);
        tokio::time::sleep(shown).await;
        storm.is_well().await;
        clock.set_back(DECADE);
        storm.is_well().await;
    }
    stage.end(storm, Duration::ZERO).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_a_node_over_postgresql_is_stepped() {
    a_node_is_stepped(Stage::alone()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_a_node_over_redis_is_stepped() {
    a_node_is_stepped(Stage::beside_redis()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_a_node_over_postgresql_shows_another_decade() {
    a_node_shows_another_decade(Stage::alone()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_a_node_over_redis_shows_another_decade() {
    a_node_shows_another_decade(Stage::beside_redis()).await;
}
