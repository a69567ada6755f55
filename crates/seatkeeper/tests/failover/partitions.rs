//! Network partitions: two sides, each with some of three nodes, Redis and PostgreSQL. Nothing passes between
//! the sides, and connections just hang. Clients reach every node.
//!
//! Two storms run meanwhile. In the first, each machine is pinned to a node and has short sessions: if both
//! sides served, two machines would hold one seat (split brain). In the second, machines try every node, and
//! no machine may lose its seat. The nodes of a side that cannot serve are unready within 5 s of the partition,
//! and stay unready.

use std::ops::Range;
use std::time::Instant;

use futures_util::future::join_all;
use seatkeeper_testbed::proxy::Network;
use seatkeeper_testbed::redis::Redis;

use super::catalogue::Watch;
use super::steady::{Manner, Steady, storm_permit};
use super::support::is_out_until;
use super::trial::{NODES, Network3, outage, short_outage, ttl_seconds};
use crate::support::knobs;

/// The number of admissions that shows a healthy service.
const WELL: u64 = 30;

/// Shorter than a partition: a seat unreachable on one side would be given away on the other.
pub(super) const SHORT_TTL_SECONDS: u64 = 4;

/// The nodes and the Redis on PostgreSQL's side.
#[derive(Clone, Copy, Debug)]
pub(super) struct Split {
    pub(super) nodes_with_postgres: usize,
    pub(super) redis_with_postgres: bool,
}

impl Split {
    /// Returns the nodes of the side that must not serve: the side without PostgreSQL, unless every node is on
    /// that side together with Redis.
    pub(super) fn losing_side(self) -> Range<usize> {
        let serves_without_postgres = self.nodes_with_postgres == 0 && !self.redis_with_postgres;
        if serves_without_postgres { NODES..NODES } else { self.nodes_with_postgres..NODES }
    }
}

pub(super) fn split_up(network: &Network3, split: Split) {
    let Split { nodes_with_postgres, redis_with_postgres } = split;
    for node in 0..NODES {
        let is_with_postgres = node < nodes_with_postgres;
        let state = |passes| if passes { Network::Well } else { Network::Silent };
        network.to_postgres[node].set(state(is_with_postgres));
        network.to_redis[node].set(state(is_with_postgres == redis_with_postgres));
    }
}

pub(super) fn heal(network: &Network3) {
    network.to_postgres.iter().chain(&network.to_redis).for_each(|proxy| proxy.set(Network::Well));
}

async fn survives(test: &'static str, split: Split) {
    let (permit, redis, seed) = (storm_permit().await, Redis::start(), knobs::seed());
    let network = Network3::start(&redis, seed).await;
    suffers(test, split, network, false).await;
    drop(permit);
}

/// Like [`survives`], while nodes start.
async fn survives_starts(test: &'static str, split: Split) {
    let (permit, redis, seed) = (storm_permit().await, Redis::start(), knobs::seed());
    let mut network = Network3::start(&redis, seed).await;
    network.nodes.keep_addresses().await;
    suffers(test, split, network, true).await;
    drop(permit);
}

/// Splits the network, repeatedly. With `starts_nodes`, nodes start on PostgreSQL's side meanwhile.
async fn suffers(test: &'static str, split: Split, mut network: Network3, starts_nodes: bool) {
    let (seed, lasts) = (knobs::seed(), if starts_nodes { short_outage() } else { outage() });
    let manner = |ttl_seconds, pinned| Manner { ttl_seconds, pinned, seed };
    let mut pinned = Steady::begin(&network.nodes, manner(SHORT_TTL_SECONDS, true)).await;
    let mut roaming = Steady::begin(&network.nodes, manner(ttl_seconds(), false)).await;
    pinned.goes_on(WELL).await;
    roaming.goes_on(WELL).await;
    let clients = network.nodes.clients();
    for _ in 0..knobs::fault_cycles() {
        let mut watch = Watch::begin(test, &network.nodes).await;
        split_up(&network, split);
        let (began, losing) = (Instant::now(), &clients[split.losing_side()]);
        if starts_nodes {
            start_nodes(&mut network);
        }
        let are_out = losing.iter().map(|node| is_out_until(node, began, || began.elapsed() >= lasts));
        join_all(are_out).await;
        tokio::time::sleep(lasts.saturating_sub(began.elapsed())).await;
        heal(&network);
        watch.is_over();
        watch.judge(&mut network.nodes, &mut roaming).await;
        if starts_nodes {
            // All tests share a PostgreSQL with room for the connections of some nodes only.
            let mut newcomer = network.nodes.harnesses.pop().expect("the fourth node");
            tokio::task::block_in_place(|| newcomer.stop());
        }
        pinned.goes_on(WELL).await;
        roaming.goes_on(WELL).await;
    }
    roaming.end_beside(network.nodes, vec![pinned]).await;
}

/// Kills a node on PostgreSQL's side, starts the node again, and adds a fourth node with the same stores.
fn start_nodes(network: &mut Network3) {
    const NODE: usize = 0;
    network.nodes.kill(NODE);
    let registry = format!("redis://{}", network.to_redis[NODE].address());
    tokio::task::block_in_place(|| {
        network.nodes.start_again(NODE);
        network.nodes.add_behind(&registry, &network.to_postgres[NODE]);
    });
}

macro_rules! splits {
    ($($(#[$attribute:meta])* $name:ident: $survives:ident, $nodes:literal nodes with PostgreSQL, $redis:literal;)+) => {
        $(
            $(#[$attribute])*
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                $survives(stringify!($name), Split { nodes_with_postgres: $nodes, redis_with_postgres: $redis }).await;
            }
        )+
    };
}

// The last value is `true` if Redis is on PostgreSQL's side.
splits! {
    one_node_alone_with_redis: survives, 2 nodes with PostgreSQL, false;
    one_node_alone_with_postgres: survives, 1 nodes with PostgreSQL, false;
    all_nodes_without_redis: survives, 3 nodes with PostgreSQL, false;
    all_nodes_without_postgres: survives, 0 nodes with PostgreSQL, false;
    one_node_without_anything: survives, 2 nodes with PostgreSQL, true;
    nodes_start_while_one_node_is_alone_with_redis: survives_starts, 2 nodes with PostgreSQL, false;
    #[ignore = "tried by scripts/faults"]
    nodes_start_while_one_node_is_without_anything: survives_starts, 2 nodes with PostgreSQL, true;
    #[ignore = "tried by scripts/faults"]
    two_nodes_without_anything: survives, 1 nodes with PostgreSQL, true;
    #[ignore = "tried by scripts/faults"]
    all_nodes_without_anything: survives, 0 nodes with PostgreSQL, true;
}
