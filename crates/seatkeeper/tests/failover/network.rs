//! The network between nodes and a store passes traffic one way only, or loses and delays it.

use std::ops::Range;
use std::time::Duration;

use seatkeeper_testbed::proxy::Network;
use seatkeeper_testbed::redis::Redis;

use super::trial::{NODES, Network3, Trial, outage, permit, short_outage};
use crate::support::knobs;

#[derive(Clone, Copy, Debug)]
enum Store {
    Redis,
    Postgres,
}

async fn suffers(test: &'static str, nodes: Range<usize>, store: Store, network: Network) {
    let (permit, redis, seed) = (permit().await, Redis::start(), knobs::seed());
    let Network3 { nodes: all, to_redis, to_postgres } = Network3::start(&redis, seed).await;
    let proxies = match store {
        Store::Redis => &to_redis[nodes],
        Store::Postgres => &to_postgres[nodes],
    };
    let mut trial = Trial::begin(test, all, seed, permit).await;
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        proxies.iter().for_each(|proxy| proxy.set(network));
        tokio::time::sleep(outage()).await;
        proxies.iter().for_each(|proxy| proxy.set(Network::Well));
        trial.heals().await;
    }
    trial.end().await;
}

macro_rules! suffers {
    ($($(#[$attribute:meta])* $name:ident: $nodes:expr, $store:ident, $network:ident;)+) => {
        $(
            $(#[$attribute])*
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                suffers(stringify!($name), $nodes, Store::$store, Network::$network).await;
            }
        )+
    };
}

suffers! {
    #[ignore = "tried by scripts/faults"]
    one_node_hears_nothing_of_redis: 0..1, Redis, AnswersWait;
    one_node_is_not_heard_by_redis: 0..1, Redis, RequestsWait;
    one_node_hears_nothing_of_postgres: 0..1, Postgres, AnswersWait;
    #[ignore = "tried by scripts/faults"]
    one_node_is_not_heard_by_postgres: 0..1, Postgres, RequestsWait;
    all_nodes_hear_nothing_of_redis: 0..NODES, Redis, AnswersWait;
    #[ignore = "tried by scripts/faults"]
    all_nodes_are_not_heard_by_redis: 0..NODES, Redis, RequestsWait;
    #[ignore = "tried by scripts/faults"]
    all_nodes_hear_nothing_of_postgres: 0..NODES, Postgres, AnswersWait;
    all_nodes_are_not_heard_by_postgres: 0..NODES, Postgres, RequestsWait;
    the_network_to_redis_loses_and_delays: 0..NODES, Redis, Lossy;
    the_network_to_postgres_loses_and_delays: 0..NODES, Postgres, Lossy;
}

/// The delays of Redis's answers, one after another. Each is longer than a circuit breaker waits for a write.
const DELAYS: [Duration; 3] = [Duration::from_secs(1), Duration::from_secs(8), Duration::from_secs(3)];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_answers_of_redis_take_seconds() {
    let (permit, redis, seed) = (permit().await, Redis::start(), knobs::seed());
    let Network3 { nodes, to_redis, to_postgres: _to_postgres } = Network3::start(&redis, seed).await;
    let mut trial = Trial::begin("the_answers_of_redis_take_seconds", nodes, seed, permit).await;
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        for delay in DELAYS {
            to_redis.iter().for_each(|proxy| proxy.set(Network::AnswersLate(delay)));
            tokio::time::sleep(short_outage() / 2).await;
        }
        to_redis.iter().for_each(|proxy| proxy.set(Network::Well));
        trial.heals().await;
    }
    trial.end().await;
}
