//! A store, a node, or the way to a store comes and goes: away for some seconds, back for some seconds, again and again.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use seatkeeper_testbed::postgres::Postgres;
use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::Redis;

use super::support::{Nodes, signal};
use super::trial::{NODES, Network3, Trial, outage, permit};
use crate::support::knobs;

/// The times away and back of a party that stutters: an overloaded host, or a paused virtual machine.
const STUTTER: Rhythm = Rhythm { away: Duration::from_millis(1_500), back: Duration::from_millis(500) };

/// The times away and back of a ledger: longer than any epoch lease.
const LEDGER_SWING: Rhythm = Rhythm { away: Duration::from_secs(5), back: Duration::from_secs(4) };

/// The times away and back of a Redis that circuit breakers notice each time: a silent server opens them after 5 s.
const REDIS_SWING: Rhythm = Rhythm { away: Duration::from_secs(7), back: Duration::from_secs(4) };

#[derive(Clone, Copy)]
struct Rhythm {
    away: Duration,
    back: Duration,
}

impl Rhythm {
    /// Calls `set` with `true` when the party goes and with `false` when the party is back, for an outage.
    async fn play(self, mut set: impl FnMut(bool)) {
        let began = Instant::now();
        while began.elapsed() < outage() {
            set(true);
            tokio::time::sleep(self.away).await;
            set(false);
            tokio::time::sleep(self.back).await;
        }
    }
}

async fn redis_flaps(test: &'static str, rhythm: Rhythm) {
    let (permit, redis) = (permit().await, Redis::start());
    let mut trial = Trial::over(test, &redis.url(), permit).await;
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        rhythm.play(|is_away| if is_away { redis.pause() } else { redis.resume() }).await;
        trial.heals().await;
    }
    trial.end().await;
}

async fn postgres_flaps(test: &'static str, rhythm: Rhythm) {
    let (permit, redis) = (permit().await, Redis::start());
    let server = tokio::task::block_in_place(Postgres::start);
    let mut nodes = Nodes::on(server.url("postgres"));
    tokio::task::block_in_place(|| (0..NODES).for_each(|_| nodes.add(&redis.url())));
    let mut trial = Trial::begin(test, nodes, knobs::seed(), permit).await;
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        rhythm.play(|is_away| if is_away { server.pause() } else { server.resume() }).await;
        trial.heals().await;
    }
    trial.end().await;
}

/// The ways of the three nodes to Redis and to PostgreSQL.
struct Ways {
    to_redis: Vec<Proxy>,
    to_postgres: Vec<Proxy>,
}

/// Cuts the ways chosen by `chosen` in a rhythm. The second argument of `chosen` counts the cuts.
async fn ways_flap(test: &'static str, rhythm: Rhythm, chosen: impl Fn(&Ways, usize) -> &[Proxy]) {
    let (permit, redis) = (permit().await, Redis::start());
    let Network3 { nodes, to_redis, to_postgres } = Network3::start(&redis, knobs::seed()).await;
    let ways = Ways { to_redis, to_postgres };
    let mut trial = Trial::begin(test, nodes, knobs::seed(), permit).await;
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        let mut cuts = 0;
        let cut_or_mend = |is_away| {
            let network = if is_away { Network::Cut } else { Network::Well };
            chosen(&ways, cuts).iter().for_each(|way| way.set(network));
            cuts += usize::from(!is_away);
        };
        rhythm.play(cut_or_mend).await;
        trial.heals().await;
    }
    trial.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_stutters() {
    redis_flaps("redis_stutters", STUTTER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tried by scripts/faults"]
async fn redis_comes_and_goes() {
    redis_flaps("redis_comes_and_goes", REDIS_SWING).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tried by scripts/faults"]
async fn postgres_stutters() {
    postgres_flaps("postgres_stutters", STUTTER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tried by scripts/faults"]
async fn postgres_comes_and_goes() {
    postgres_flaps("postgres_comes_and_goes", LEDGER_SWING).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_way_to_redis_comes_and_goes_for_all_nodes() {
    ways_flap("the_way_to_redis_comes_and_goes_for_all_nodes", REDIS_SWING, |ways, _| &ways.to_redis).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "tried by scripts/faults"]
async fn each_node_in_turn_loses_redis() {
    ways_flap("each_node_in_turn_loses_redis", REDIS_SWING, |ways, cuts| &ways.to_redis[cuts % NODES..][..1])
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_node_in_turn_loses_postgres() {
    ways_flap("each_node_in_turn_loses_postgres", LEDGER_SWING, |ways, cuts| {
        &ways.to_postgres[cuts % NODES..][..1]
    })
    .await;
}

/// A node answers late, and again and again by a lease that has just ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_stutters() {
    let (permit, redis) = (permit().await, Redis::start());
    let mut trial = Trial::over("a_node_stutters", &redis.url(), permit).await;
    for _ in 0..knobs::fault_cycles() {
        trial.breaks().await;
        let node = &trial.nodes.harnesses[0];
        STUTTER.play(|is_away| signal(node, if is_away { Signal::STOP } else { Signal::CONT })).await;
        trial.heals().await;
    }
    trial.end().await;
}
