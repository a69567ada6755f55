//! Clock steps: the clock of PostgreSQL's host, of a master of a Redis Cluster, or of a node, is set during a storm. No
//! machine may lose its seat, no answer may be lost, and no wrong time may be recorded. A new step needs an entry in the
//! catalogue.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use seatkeeper_testbed::clock::Clock;
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::redis::{Redis, RedisCluster};
use sqlx::Connection as _;
use tokio::sync::SemaphorePermit;

use super::support::Nodes;
use super::trial::{NODES, Trial, outage, permit};
use crate::support::knobs;
use crate::until::within;

pub(super) const STEP: Duration = Duration::from_secs(400);

const DECADE: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Time limit for PostgreSQL's registry time to run on, once the clock is right again or has settled.
pub(super) const RUNS_ON_WITHIN: Duration = Duration::from_secs(60);

/// Nodes over a PostgreSQL whose clock is set by the test.
pub(super) struct Servers {
    pub(super) nodes: Nodes,
    pub(super) clock: Arc<Clock>,
    database: String,
    // Dropped after the nodes.
    redis: Option<Redis>,
    _postgres: Postgres,
}

/// A storm over servers.
struct Stage {
    trial: Trial,
    clock: Arc<Clock>,
    database: String,
    registry: String,
    // Dropped after the nodes.
    _redis: Option<Redis>,
    _postgres: Postgres,
}

/// The registry of licenses and devices.
#[derive(Clone, Copy, Debug)]
enum Registry {
    Redis,
    Postgres,
}

impl Servers {
    /// Starts nodes without Redis.
    pub(super) fn alone(nodes: usize) -> Self {
        Self::over(Registry::Postgres, nodes)
    }

    fn over(registry: Registry, nodes: usize) -> Self {
        tokio::task::block_in_place(|| {
            let redis = match registry {
                Registry::Redis => Some(Redis::start()),
                Registry::Postgres => None,
            };
            let clock = Arc::new(Clock::new());
            let postgres = Postgres::start_by(&clock);
            let database = postgres.url("postgres");
            let mut servers =
                Self { nodes: Nodes::on(database.clone()), clock, database, redis, _postgres: postgres };
            let registry = servers.registry();
            (0..nodes).for_each(|_| servers.nodes.add(&registry));
            servers
        })
    }

    fn registry(&self) -> String {
        self.redis.as_ref().map_or_else(|| self.database.clone(), Redis::url)
    }

    /// Adds a node with a clock of its own.
    fn add_by(&mut self, clock: &Clock) {
        let registry = self.registry();
        tokio::task::block_in_place(|| self.nodes.add_in(&clock.environment(), &registry));
    }

    /// Waits until registry time in PostgreSQL runs at the pace of the machine's clock.
    pub(super) async fn runs_on(&self) {
        runs_on(&self.database).await;
    }

    async fn storm(self, test: &'static str, permit: SemaphorePermit<'static>) -> Stage {
        let registry = self.registry();
        let Self { nodes, clock, database, redis: _redis, _postgres } = self;
        let trial = Trial::begin(test, nodes, knobs::seed(), permit).await;
        Stage { trial, clock, database, registry, _redis, _postgres }
    }
}

async fn runs_on(database: &str) {
    let mut database = sqlx::PgConnection::connect(database).await.expect("a connection");
    within(RUNS_ON_WITHIN, "registry time runs on", async || {
        let trusted: bool = sqlx::query_scalar("SELECT registry.clock() <= trusted_until FROM registry.told")
            .fetch_one(&mut database)
            .await
            .expect("the row of the clock");
        tokio::time::sleep(Duration::from_millis(50)).await;
        if trusted { Ok(()) } else { Err("the clock is not trusted".to_owned()) }
    })
    .await;
}

impl Stage {
    async fn begin(test: &'static str, registry: Registry) -> Self {
        let permit = permit().await;
        Servers::over(registry, NODES).storm(test, permit).await
    }

    /// Ends the storm, and compares the latest recorded time with the machine's clock.
    async fn end(self, ahead_max: Duration) {
        check_record(&self.trial.nodes, ahead_max).await;
        self.trial.end().await;
    }
}

#[expect(clippy::disallowed_methods, reason = "it decides nothing; the record is compared with it")]
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970")
}

/// Fails the test if the latest recorded time is more than `ahead_max` ahead of the machine's clock.
async fn check_record(nodes: &Nodes, ahead_max: Duration) {
    let ahead = nodes.last_recorded().await.saturating_sub(now());
    assert!(ahead <= ahead_max, "the record is {ahead:?} ahead of the clock");
}

/// Sets a clock ten years ahead for an outage, and judges the fault.
async fn show_another_decade(trial: &mut Trial, clock: &Clock) {
    trial.breaks().await;
    clock.advance(DECADE);
    tokio::time::sleep(outage()).await;
    clock.set_back(DECADE);
    trial.heals().await;
}

/// Steps the clock of PostgreSQL forward. Registry time stands still, and runs on once the clock has settled.
async fn postgresql_is_stepped_forward(test: &'static str, registry: Registry) {
    for _ in 0..knobs::fault_cycles() {
        // New servers: a clock that is two steps ahead is further from the nodes' clocks than is believed.
        let mut stage = Stage::begin(test, registry).await;
        stage.trial.breaks().await;
        stage.clock.advance(STEP);
        runs_on(&stage.database).await;
        stage.trial.heals().await;
        stage.end(STEP).await;
    }
}

/// Steps the clock of PostgreSQL back, and forward again. Registry time stands still in between.
async fn postgresql_is_stepped_back(test: &'static str, registry: Registry) {
    let mut stage = Stage::begin(test, registry).await;
    for _ in 0..knobs::fault_cycles() {
        stage.trial.breaks().await;
        stage.clock.set_back(STEP);
        tokio::time::sleep(outage()).await;
        stage.clock.advance(STEP);
        stage.trial.heals().await;
        runs_on(&stage.database).await;
    }
    stage.end(Duration::ZERO).await;
}

/// Sets the clock of PostgreSQL ten years ahead, for longer than a clock takes to settle.
async fn postgresql_shows_another_decade(test: &'static str, registry: Registry) {
    let mut stage = Stage::begin(test, registry).await;
    for _ in 0..knobs::fault_cycles() {
        show_another_decade(&mut stage.trial, &stage.clock).await;
        runs_on(&stage.database).await;
    }
    stage.end(Duration::ZERO).await;
}

/// Steps the clock of one node forward and back, while the node serves clients.
async fn a_node_is_stepped(test: &'static str, registry: Registry) {
    let (permit, clock) = (permit().await, Clock::new());
    let mut servers = Servers::over(registry, NODES - 1);
    servers.add_by(&clock);
    let mut stage = servers.storm(test, permit).await;
    for _ in 0..knobs::fault_cycles() {
        stage.trial.breaks().await;
        for set in [Clock::advance, Clock::set_back, Clock::set_back, Clock::advance] {
            set(&clock, STEP);
            stage.trial.is_well().await;
        }
        stage.trial.heals().await;
    }
    stage.end(Duration::ZERO).await;
}

/// Sets the clock of one node ten years ahead. The node refuses every token as expired, so clients use the
/// other nodes. Leases and rebuilds go on.
async fn a_node_shows_another_decade(test: &'static str, registry: Registry) {
    let (permit, clock) = (permit().await, Clock::new());
    let mut stage = Servers::over(registry, NODES - 1).storm(test, permit).await;
    let Stage { trial, registry, .. } = &mut stage;
    tokio::task::block_in_place(|| trial.nodes.add_in(&clock.environment(), registry));
    for _ in 0..knobs::fault_cycles() {
        show_another_decade(&mut stage.trial, &clock).await;
    }
    stage.end(Duration::ZERO).await;
}

/// A storm over a Redis Cluster in which the first master has the clock of the test.
struct ClusterStage {
    trial: Trial,
    clock: Arc<Clock>,
    // Dropped after the nodes.
    _cluster: RedisCluster,
}

impl ClusterStage {
    async fn begin(test: &'static str) -> Self {
        const MASTERS: usize = 3;
        let permit = permit().await;
        let clocks: Vec<_> = std::iter::repeat_with(|| Arc::new(Clock::new())).take(MASTERS).collect();
        let cluster = tokio::task::block_in_place(|| RedisCluster::start_by(&clocks));
        let trial = Trial::over(test, &cluster.url(), permit).await;
        Self { trial, clock: Arc::clone(&clocks[0]), _cluster: cluster }
    }

    async fn end(self) {
        check_record(&self.trial.nodes, STEP).await;
        self.trial.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_a_master_of_a_cluster_is_stepped_forward() {
    for _ in 0..knobs::fault_cycles() {
        // New servers: a clock that is two steps ahead is further from the nodes' clocks than is believed.
        let mut stage = ClusterStage::begin("the_clock_of_a_master_of_a_cluster_is_stepped_forward").await;
        stage.trial.breaks().await;
        stage.clock.advance(STEP);
        stage.trial.heals().await;
        stage.end().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clock_of_a_master_of_a_cluster_shows_another_decade() {
    let mut stage = ClusterStage::begin("the_clock_of_a_master_of_a_cluster_shows_another_decade").await;
    for _ in 0..knobs::fault_cycles() {
        show_another_decade(&mut stage.trial, &stage.clock).await;
    }
    stage.end().await;
}

macro_rules! steps {
    ($($(#[$attribute:meta])* $name:ident: $step:ident over $registry:ident;)+) => {
        $(
            $(#[$attribute])*
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $step(stringify!($name), Registry::$registry).await;
            }
        )+
    };
}

steps! {
    the_clock_of_postgresql_alone_is_stepped_forward: postgresql_is_stepped_forward over Postgres;
    #[ignore = "tried by scripts/faults"]
    the_clock_of_postgresql_alone_is_stepped_back: postgresql_is_stepped_back over Postgres;
    the_clock_of_postgresql_alone_shows_another_decade: postgresql_shows_another_decade over Postgres;
    #[ignore = "tried by scripts/faults"]
    the_clock_of_postgresql_beside_redis_is_stepped_forward: postgresql_is_stepped_forward over Redis;
    the_clock_of_postgresql_beside_redis_is_stepped_back: postgresql_is_stepped_back over Redis;
    the_clock_of_postgresql_beside_redis_shows_another_decade: postgresql_shows_another_decade over Redis;
    the_clock_of_a_node_over_postgresql_is_stepped: a_node_is_stepped over Postgres;
    #[ignore = "tried by scripts/faults"]
    the_clock_of_a_node_over_redis_is_stepped: a_node_is_stepped over Redis;
    #[ignore = "tried by scripts/faults"]
    the_clock_of_a_node_over_postgresql_shows_another_decade: a_node_shows_another_decade over Postgres;
    the_clock_of_a_node_over_redis_shows_another_decade: a_node_shows_another_decade over Redis;
}
