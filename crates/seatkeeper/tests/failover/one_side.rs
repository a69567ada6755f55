//! Network partitions as in `partitions`, with a single machine observed on each side.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use seatkeeper_testbed::redis::Redis;
use serde_json::Value;

use super::partitions::{SHORT_TTL_SECONDS, Split, heal, split_up};
use super::scene_again::{judged, played};
use super::steady::storm_permit;
use super::support::is_out_until;
use super::trial::{NODES, Network3, outage, ttl_seconds};
use crate::harness::Client;
use crate::support::knobs;
use crate::support::scene::License;

/// Time limit for the side with PostgreSQL to give away the seat of an unreachable holder.
const GIVEN_AWAY_MAX: Duration = Duration::from_secs(60);

/// Time limit for a node to serve a bucket again that is out of service for a moment.
const UNSERVED_MAX: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(100);

/// A machine on the side without PostgreSQL renews its seat for as long as it is answered. Another machine
/// gets the seat on the other side, but not before the TTL told to the first machine is over. The nodes of the
/// first side are unready in time, measured from the partition, and stay unready.
async fn one_seat_has_one_holder(split: Split) {
    const TTL: Duration = Duration::from_secs(SHORT_TTL_SECONDS);
    let (_permit, redis) = (storm_permit().await, Redis::start());
    let mut network = Network3::start(&redis, knobs::seed()).await;
    let (first, last) = (network.nodes.clients().remove(0), network.nodes.clients().remove(NODES - 1));
    let license = License::make(&network.nodes.harnesses[0].admin(), 1, Some(TTL.as_secs())).await;
    let ann = last.acquire(&license.key, "ann").await.expect(201)["session_id"].clone();
    split_up(&network, split);
    let began = Instant::now();
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
        while ![200, 201].contains(&first.acquire(&license.key, "bob").await.status) {
            assert!(
                began.elapsed() < GIVEN_AWAY_MAX,
                "nobody gets the seat of a machine that is not heard of"
            );
            tokio::time::sleep(PAUSE).await;
        }
        let taken = Instant::now();
        // Enough time for a wrong answer to the first machine to show.
        tokio::time::sleep(TTL).await;
        is_over.store(true, Relaxed);
        taken
    };
    let losing = network.nodes.clients().split_off(split.losing_side().start);
    let are_out = losing.iter().map(|node| is_out_until(node, began, || is_over.load(Relaxed)));
    let ((), taken, _) = tokio::join!(renew, take, join_all(are_out));
    let told_until = *told_until.lock().expect("nobody panics");
    assert!(taken >= told_until, "two holders of one seat for {:?}", told_until - taken);
    heal(&network);
    network.nodes.harnesses.iter_mut().for_each(|harness| drop(harness.stop()));
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
    let _permit = storm_permit().await;
    played(heartbeats_go_on_without_postgres).await;
}

/// Returns `false` if a node stood still. PostgreSQL stays unreachable throughout, so a lapsed lease would stay
/// lapsed.
async fn heartbeats_go_on_without_postgres() -> bool {
    let redis = Redis::start();
    let network = Network3::start(&redis, knobs::seed()).await;
    let clients = network.nodes.clients();
    let license = License::make(&network.nodes.harnesses[0].admin(), 1, Some(ttl_seconds())).await;
    let ann = clients[0].acquire(&license.key, "ann").await.expect(201)["session_id"].clone();
    for client in &clients {
        client.heartbeat(&ann).await.expect(200);
    }
    split_up(&network, Split { nodes_with_postgres: 0, redis_with_postgres: false });
    let (began, mut verdict) = (Instant::now(), Ok(()));
    while verdict.is_ok() && began.elapsed() < outage() {
        for client in &clients {
            verdict = verdict.and(goes_on(client, &ann, began).await);
        }
        tokio::time::sleep(PAUSE).await;
    }
    heal(&network);
    judged(network.nodes, verdict)
}

/// Checks that a node renews a session and is ready, after a few attempts at most.
async fn goes_on(client: &Client, session: &Value, since: Instant) -> Result<(), String> {
    let asked = Instant::now();
    loop {
        let (beat, ready) = (client.heartbeat(session).await, client.get("/readyz").await);
        match (beat.status, ready.status) {
            (200, 200) => return Ok(()),
            (200 | 503, 200 | 503) if asked.elapsed() < UNSERVED_MAX => tokio::time::sleep(PAUSE).await,
            _ => return Err(format!("{:?} after the split: {beat:?}, {ready:?}", since.elapsed())),
        }
    }
}
