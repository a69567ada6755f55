//! Faults of nodes over PostgreSQL alone, which has the sessions and the record. A new fault needs an entry in
//! the catalogue.

use std::ops::Range;

use seatkeeper_testbed::postgres::{Postgres, Stop};
use seatkeeper_testbed::proxy::{Network, Proxy};

use super::support::Nodes;
use super::trial::{NODES, Trial, kills_nodes, outage, permit};
use crate::support::knobs;

/// Starts three nodes over a PostgreSQL.
fn nodes_on(postgres: &Postgres) -> Nodes {
    let ledger = postgres.url("postgres");
    let mut nodes = Nodes::on(ledger.clone());
    (0..NODES).for_each(|_| nodes.add(&ledger));
    nodes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_alone_crashes() {
    let permit = permit().await;
    let server = tokio::task::block_in_place(Postgres::start);
    let nodes = tokio::task::block_in_place(|| nodes_on(&server));
    let mut trial = Trial::begin("postgres_alone_crashes", nodes, knobs::seed(), permit).await;
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        tokio::task::block_in_place(|| server.stop(Stop::Immediate));
        tokio::time::sleep(outage()).await;
        tokio::task::block_in_place(|| server.start_again());
        trial.heals().await;
    }
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_alone_is_frozen_and_wakes() {
    let permit = permit().await;
    let server = tokio::task::block_in_place(Postgres::start);
    let nodes = tokio::task::block_in_place(|| nodes_on(&server));
    let mut trial = Trial::begin("postgres_alone_is_frozen_and_wakes", nodes, knobs::seed(), permit).await;
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        server.pause();
        tokio::time::sleep(outage()).await;
        server.resume();
        trial.heals().await;
    }
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_over_postgres_alone_is_killed_and_started_again() {
    let permit = permit().await;
    let nodes = tokio::task::block_in_place(|| Nodes::in_ledger(NODES));
    kills_nodes("a_node_over_postgres_alone_is_killed_and_started_again", nodes, permit).await;
}

/// Disturbs the network between some nodes and PostgreSQL for a while.
async fn suffers(test: &'static str, disturbed: Range<usize>, network: Network) {
    let (permit, seed) = (permit().await, knobs::seed());
    let mut nodes = tokio::task::block_in_place(|| Nodes::over(&[]));
    let mut proxies = Vec::new();
    for number in 0..NODES {
        let proxy = Proxy::start(nodes.ledger_address(), seed ^ number as u64).await;
        tokio::task::block_in_place(|| nodes.add_alone_behind(&proxy));
        proxies.push(proxy);
    }
    let proxies = &proxies[disturbed];
    let mut trial = Trial::begin(test, nodes, seed, permit).await;
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
    ($($name:ident: $nodes:expr, $network:ident;)+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                suffers(stringify!($name), $nodes, Network::$network).await;
            }
        )+
    };
}

suffers! {
    one_node_is_cut_off_from_postgres_alone: 0..1, Silent;
    all_nodes_are_cut_off_from_postgres_alone: 0..NODES, Silent;
    the_network_to_postgres_alone_loses_and_delays: 0..NODES, Lossy;
}
