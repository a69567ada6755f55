//! Faults of nodes over PostgreSQL alone, which has the sessions and the record. A new fault needs an entry in
//! the catalogue.

use std::ops::Range;
use std::time::Duration;

use seatkeeper_testbed::postgres::{Postgres, Stop};
use seatkeeper_testbed::proxy::{Network, Proxy};

use super::support::Nodes;
use super::trial::{NODES, Trial, alone_behind_proxies, kills_nodes, outage, permit, short_outage};
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
async fn is_disturbed(test: &'static str, disturbed: Range<usize>, network: Network, lasts: Duration) {
    let (permit, seed) = (permit().await, knobs::seed());
    let (nodes, proxies) = alone_behind_proxies(tokio::task::block_in_place(|| Nodes::over(&[])), seed).await;
    let mut trial = Trial::begin(test, nodes, seed, permit).await;
    suffers(&mut trial, &proxies[disturbed], network, lasts).await;
    trial.end().await;
}

/// Changes the network behind `proxies` for a while, repeatedly.
async fn suffers(trial: &mut Trial, proxies: &[Proxy], network: Network, lasts: Duration) {
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        proxies.iter().for_each(|proxy| proxy.set(network));
        tokio::time::sleep(lasts).await;
        proxies.iter().for_each(|proxy| proxy.set(Network::Well));
        trial.heals().await;
    }
}

macro_rules! disturbs {
    ($($(#[$attribute:meta])* $name:ident: $nodes:expr, $network:ident for $lasts:ident;)+) => {
        $(
            $(#[$attribute])*
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                is_disturbed(stringify!($name), $nodes, Network::$network, $lasts()).await;
            }
        )+
    };
}

disturbs! {
    one_node_is_cut_off_from_postgres_alone: 0..1, Silent for outage;
    #[ignore = "tried by scripts/faults"]
    one_node_hears_nothing_of_postgres_alone: 0..1, AnswersWait for short_outage;
    #[ignore = "tried by scripts/faults"]
    one_node_is_not_heard_by_postgres_alone: 0..1, RequestsWait for short_outage;
    all_nodes_are_cut_off_from_postgres_alone: 0..NODES, Silent for outage;
    #[ignore = "tried by scripts/faults"]
    all_nodes_hear_nothing_of_postgres_alone: 0..NODES, AnswersWait for short_outage;
    #[ignore = "tried by scripts/faults"]
    all_nodes_are_not_heard_by_postgres_alone: 0..NODES, RequestsWait for short_outage;
    the_network_to_postgres_alone_loses_and_delays: 0..NODES, Lossy for outage;
}
