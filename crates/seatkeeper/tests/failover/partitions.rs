//! The network falls apart into two sides, each with some of three nodes, Redis and PostgreSQL. Nothing passes between
//! the sides, and nobody is told. Clients reach every node.
//!
//! Two storms rage meanwhile. The machines of one stay with a node each and have short sessions: if both sides served,
//! two machines would hold one seat. The machines of the other try every node, and none of them may lose its seat.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::Redis;

use tokio::sync::SemaphorePermit;

use super::steady::{Manner, Steady, storm_permit};
use super::support::{Nodes, answered, epochs_per_bucket};
use crate::support::knobs;
use crate::support::scene::License;

const NODES: usize = 3;

/// Admissions that show that all is well.
const WELL: u64 = 30;

/// Shorter than a partition, so that a seat that one side cannot hear of would be given away by the other.
const SHORT_TTL_SECONDS: u64 = 4;

const LONG_TTL_SECONDS: u64 = 60;

/// Longer than lease, circuit breaker, rebuild and a short TTL together.
const PARTITION: Duration = Duration::from_secs(16);

/// To the fallback and back again.
const EPOCHS_MAX: u64 = 2;

/// The nodes and the Redis on PostgreSQL's side.
#[derive(Clone, Copy, Debug)]
struct Split {
    nodes_with_postgres: usize,
    redis_with_postgres: bool,
}

/// Three nodes, each behind proxies of its own.
struct Network3 {
    nodes: Nodes,
    to_redis: Vec<Proxy>,
    to_postgres: Vec<Proxy>,
    _redis: Redis,
    _permit: SemaphorePermit<'static>,
}

/// The same with two storms.
struct Stage {
    network: Network3,
    pinned: Steady,
    roaming: Steady,
}

impl Network3 {
    async fn start(seed: u64) -> Self {
        let (permit, redis) = (storm_permit().await, Redis::start());
        let mut nodes = tokio::task::block_in_place(|| Nodes::over(&[]));
        let (mut to_redis, mut to_postgres) = (Vec::new(), Vec::new());
        for number in 0..NODES {
            let redis = Proxy::start(([127, 0, 0, 1], redis.port()).into(), seed ^ number as u64).await;
            let postgres = Proxy::start(nodes.ledger_address(), seed ^ number as u64).await;
            let url = format!("redis://{}", redis.address());
            tokio::task::block_in_place(|| nodes.add_behind(&url, &postgres));
            to_redis.push(redis);
            to_postgres.push(postgres);
        }
        Self { nodes, to_redis, to_postgres, _redis: redis, _permit: permit }
    }

    fn split(&self, split: Split) {
        let Split { nodes_with_postgres, redis_with_postgres } = split;
        for node in 0..NODES {
            let is_with_postgres = node < nodes_with_postgres;
            let network = |passes| if passes { Network::Well } else { Network::Silent };
            self.to_postgres[node].set(network(is_with_postgres));
            self.to_redis[node].set(network(is_with_postgres == redis_with_postgres));
        }
    }

    fn heal(&self) {
        self.to_postgres.iter().chain(&self.to_redis).for_each(|proxy| proxy.set(Network::Well));
    }
}

impl Stage {
    async fn start() -> Self {
        let seed = knobs::seed();
        let network = Network3::start(seed).await;
        let manner = |ttl_seconds, pinned| Manner { ttl_seconds, pinned, seed };
        let mut pinned = Steady::begin(&network.nodes, manner(SHORT_TTL_SECONDS, true)).await;
        let mut roaming = Steady::begin(&network.nodes, manner(LONG_TTL_SECONDS, false)).await;
        pinned.goes_on(WELL).await;
        roaming.goes_on(WELL).await;
        Self { network, pinned, roaming }
    }
}

async fn survives(split: Split) {
    println!("{split:?}");
    let mut stage = Stage::start().await;
    for _ in 0..knobs::fault_cycles() {
        let before = epochs_per_bucket(&stage.network.nodes).await;
        stage.network.split(split);
        tokio::time::sleep(PARTITION).await;
        stage.network.heal();
        stage.pinned.goes_on(WELL).await;
        stage.roaming.goes_on(WELL).await;
        stage.network.nodes.raised_at_most(EPOCHS_MAX, &before).await;
    }
    stage.roaming.end_beside(stage.network.nodes, vec![stage.pinned]).await;
}

macro_rules! splits {
    ($($name:ident: $nodes:literal nodes with PostgreSQL, $redis:literal;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                survives(Split { nodes_with_postgres: $nodes, redis_with_postgres: $redis }).await;
            }
        )+
    };
}

// The last value says whether Redis is on PostgreSQL's side.
splits! {
    one_node_alone_with_redis: 2 nodes with PostgreSQL, false;
    one_node_alone_with_postgres: 1 nodes with PostgreSQL, false;
    all_nodes_without_redis: 3 nodes with PostgreSQL, false;
    all_nodes_without_postgres: 0 nodes with PostgreSQL, false;
    one_node_without_anything: 2 nodes with PostgreSQL, true;
    two_nodes_without_anything: 1 nodes with PostgreSQL, true;
    all_nodes_without_anything: 0 nodes with PostgreSQL, true;
}

/// How long the side with PostgreSQL may take to give a seat away whose holder it cannot hear of.
const GIVEN_AWAY_MAX: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(100);

/// A machine on the side without PostgreSQL renews its seat for as long as it is answered. Another one gets the seat on the
/// other side, and not before the time is over that the first one was told.
async fn one_seat_has_one_holder(split: Split) {
    const TTL: Duration = Duration::from_secs(SHORT_TTL_SECONDS);
    let mut network = Network3::start(knobs::seed()).await;
    let (first, last) = (network.nodes.clients().remove(0), network.nodes.clients().remove(NODES - 1));
    let license = License::make(&network.nodes.houses[0].admin(), 1, Some(TTL.as_secs())).await;
    let ann = last.acquire(&license.key, "ann").await.expect(201)["session_id"].clone();
    network.split(split);
    let (told_until, is_over) = (Mutex::new(Instant::now() + TTL), AtomicBool::new(false));
    let renew = async {
        while !is_over.load(Relaxed) {
            let sent = Instant::now();
            if last.heartbeat(&ann).await.status == 200 {
                *told_until.lock().expect("nobody panics") = sent + TTL;
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    let take = async {
        let began = Instant::now();
        while ![200, 201].contains(&first.acquire(&license.key, "bob").await.status) {
            assert!(
                began.elapsed() < GIVEN_AWAY_MAX,
                "nobody gets the seat of a machine that is not heard of"
            );
            tokio::time::sleep(PAUSE).await;
        }
        let taken = Instant::now();
        // Time enough for an answer to the first machine that must not be given any more.
        tokio::time::sleep(TTL).await;
        is_over.store(true, Relaxed);
        taken
    };
    let ((), taken) = tokio::join!(renew, take);
    let told_until = *told_until.lock().expect("nobody panics");
    assert!(taken >= told_until, "two holders of one seat for {:?}", told_until - taken);
    network.heal();
    network.nodes.houses.iter_mut().for_each(|house| drop(house.stop()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_seat_has_one_holder_where_one_node_is_alone_with_redis() {
    one_seat_has_one_holder(Split { nodes_with_postgres: 2, redis_with_postgres: false }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_seat_has_one_holder_where_one_node_is_alone_with_postgres() {
    one_seat_has_one_holder(Split { nodes_with_postgres: 1, redis_with_postgres: false }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_go_on_where_no_node_hears_of_postgres() {
    let mut network = Network3::start(knobs::seed()).await;
    let clients = network.nodes.clients();
    let license = License::make(&network.nodes.houses[0].admin(), 1, Some(LONG_TTL_SECONDS)).await;
    let ann = clients[0].acquire(&license.key, "ann").await.expect(201)["session_id"].clone();
    for client in &clients {
        client.heartbeat(&ann).await.expect(200);
    }
    network.split(Split { nodes_with_postgres: 0, redis_with_postgres: false });
    let began = Instant::now();
    while began.elapsed() < PARTITION {
        for client in &clients {
            // A lease that lapsed would stay lapsed: PostgreSQL does not come back before this is over.
            answered(async || client.heartbeat(&ann).await).await.expect(200);
            answered(async || client.get("/readyz").await).await.expect(200);
        }
        tokio::time::sleep(PAUSE).await;
    }
    network.heal();
    network.nodes.houses.iter_mut().for_each(|house| drop(house.stop()));
}
