//! A trial: three nodes under a storm, and one fault at a time, with its promises in the catalogue.

use std::time::Duration;

use seatkeeper_testbed::proxy::Proxy;
use seatkeeper_testbed::redis::Redis;
use tokio::sync::SemaphorePermit;

use super::catalogue::Watch;
use super::steady::{Manner, Steady, storm_permit};
use super::support::Nodes;
use crate::support::knobs;

pub(crate) const NODES: usize = 3;

/// The shortest TTL that is safe in every outage, with two of three nodes that hang and clients that wait 5 s
/// for each: see the limits in `docs/failover.md`.
const TTL_SECONDS_MIN: u64 = 20;

/// The number of admissions that shows a healthy service.
const WELL: u64 = 30;

/// Nodes under a storm, over any registry.
pub(crate) struct Trial {
    pub(crate) nodes: Nodes,
    pub(crate) steady: Steady,
    test: &'static str,
    watch: Option<Watch>,
    _permit: SemaphorePermit<'static>,
}

/// Three nodes, each with its own proxies to Redis and PostgreSQL.
pub(crate) struct Network3 {
    pub(crate) nodes: Nodes,
    pub(crate) to_redis: Vec<Proxy>,
    pub(crate) to_postgres: Vec<Proxy>,
}

impl Network3 {
    pub(crate) async fn start(redis: &Redis, seed: u64) -> Self {
        Self::join(tokio::task::block_in_place(|| Nodes::over(&[])), redis, seed).await
    }

    /// Adds three nodes to `nodes`, which must be empty.
    pub(crate) async fn join(mut nodes: Nodes, redis: &Redis, seed: u64) -> Self {
        let (mut to_redis, mut to_postgres) = (Vec::new(), Vec::new());
        for number in 0..NODES {
            let redis = Proxy::start(([127, 0, 0, 1], redis.port()).into(), seed ^ number as u64).await;
            let postgres = Proxy::start(nodes.ledger_address(), !seed ^ number as u64).await;
            let url = format!("redis://{}", redis.address());
            tokio::task::block_in_place(|| nodes.add_behind(&url, &postgres));
            to_redis.push(redis);
            to_postgres.push(postgres);
        }
        Self { nodes, to_redis, to_postgres }
    }
}

/// Adds three nodes without Redis to `nodes`, which must be empty. Each has its own proxy to PostgreSQL.
pub(crate) async fn alone_behind_proxies(mut nodes: Nodes, seed: u64) -> (Nodes, Vec<Proxy>) {
    let mut proxies = Vec::new();
    for number in 0..NODES {
        let proxy = Proxy::start(nodes.ledger_address(), seed ^ number as u64).await;
        tokio::task::block_in_place(|| nodes.add_alone_behind(&proxy));
        proxies.push(proxy);
    }
    (nodes, proxies)
}

impl Trial {
    /// Begins the storm of `test`. Callers wait for the permit before starting servers.
    pub(crate) async fn begin(
        test: &'static str,
        nodes: Nodes,
        seed: u64,
        permit: SemaphorePermit<'static>,
    ) -> Self {
        let manner = Manner { ttl_seconds: ttl_seconds(), pinned: false, seed };
        let mut steady = Steady::begin(&nodes, manner).await;
        steady.goes_on(WELL).await;
        Self { nodes, steady, test, watch: None, _permit: permit }
    }

    /// Begins the storm of `test` on three nodes over this registry.
    pub(crate) async fn over(test: &'static str, registry: &str, permit: SemaphorePermit<'static>) -> Self {
        let nodes =
            tokio::task::block_in_place(|| Nodes::over(&[registry, registry, registry].map(str::to_owned)));
        Self::begin(test, nodes, knobs::seed(), permit).await
    }

    /// Begins the fault.
    pub(crate) async fn breaks(&mut self) {
        self.watch = Some(Watch::begin(self.test, &self.nodes).await);
    }

    /// Waits until admissions go on.
    pub(crate) async fn is_well(&mut self) {
        self.steady.goes_on(WELL).await;
    }

    /// Ends the fault, without a wait for the service.
    pub(crate) fn is_over(&mut self) {
        self.watch.as_mut().expect("something broke").is_over();
    }

    /// Ends the fault, waits until every kind is served, and fails the test if a promise was broken.
    pub(crate) async fn heals(&mut self) {
        let mut watch = self.watch.take().expect("something broke");
        watch.is_over();
        watch.judge(&mut self.nodes, &mut self.steady).await;
        self.steady.goes_on(WELL).await;
    }

    pub(crate) async fn end(self) {
        self.steady.end(self.nodes).await;
    }
}

/// Waits for a permit for a storm. Called before the storm's servers are started.
pub(crate) async fn permit() -> SemaphorePermit<'static> {
    storm_permit().await
}

/// The duration of an outage of a node or a store, or of the network between them.
pub(crate) fn outage() -> Duration {
    Duration::from_secs(knobs::freeze_seconds())
}

/// The duration of an outage that need not outlast a session. By default longer than any lease, and than a
/// circuit breaker takes to open; in `scripts/faults` as long as [`outage`].
pub(crate) fn short_outage() -> Duration {
    const SHORT: Duration = Duration::from_secs(12);
    if knobs::lapses_are_bounded() { outage() } else { SHORT.min(outage()) }
}

/// The TTL of the sessions of a trial: three quarters of an outage. A session whose heartbeats all fail would
/// end during the outage.
pub(crate) fn ttl_seconds() -> u64 {
    (knobs::freeze_seconds() * 3 / 4).max(TTL_SECONDS_MIN)
}

/// Runs the storm of `test`. Each cycle kills a node with `kill -9`, and starts the node again after the outage.
pub(crate) async fn kills_nodes(test: &'static str, mut nodes: Nodes, permit: SemaphorePermit<'static>) {
    nodes.keep_addresses().await;
    let mut trial = Trial::begin(test, nodes, knobs::seed(), permit).await;
    for cycle in 0..knobs::fault_cycles() {
        let node = usize::try_from(cycle).expect("a few") % NODES;
        trial.breaks().await;
        trial.nodes.kill(node);
        tokio::time::sleep(outage()).await;
        trial.nodes.start_again(node);
        trial.heals().await;
    }
    trial.end().await;
}
