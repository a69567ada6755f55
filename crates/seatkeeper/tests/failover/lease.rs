//! The epoch lease: a node knows only an old epoch, and its Redis still serves in that epoch. Its answers
//! must not count. A heartbeat rests on no commit, so the node answers only under its lease, and a node that
//! raises an epoch waits for the end of that lease. An admission rests on a commit, which the ledger refuses.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::Redis;
use serde_json::Value;

use super::support::{Nodes, answered, signal, usurper};
use crate::harness::{Client, Harness};
use crate::support::books::Books;
use crate::support::scene::{License, text};

/// Time limit for the other nodes to raise an epoch, or to give away a seat after its TTL.
const GIVEN_MAX: Duration = Duration::from_secs(90);

/// Enough time for an immediate answer, and much less than the second after which a ledger counts as
/// unreachable.
const AT_ONCE: Duration = Duration::from_millis(250);

const PAUSE: Duration = Duration::from_millis(20);

/// The log line of a node whose ledger took longer than a second. With such a ledger a new epoch is unknown,
/// and heartbeats may go on.
const LEDGER_SLOW: &str = "the ledger does not answer";

/// The most attempts on a machine with such a slow ledger.
const TRIES_MAX: usize = 3;

/// Three nodes: two change from their Redis to a new one. The third stays, and reaches the ledger through a
/// proxy. Ann holds the only seat of a license.
struct Scene {
    nodes: Nodes,
    clients: Vec<Client>,
    license: License,
    ann: Value,
    taken: Instant,
    old: Redis,
    to_redis: Proxy,
    to_ledger: Proxy,
}

impl Scene {
    async fn open(ttl: Duration) -> Self {
        let old = Redis::start();
        let to_redis = Proxy::start(([127, 0, 0, 1], old.port()).into(), 0).await;
        let way = format!("redis://{}", to_redis.address());
        let mut nodes = tokio::task::block_in_place(|| Nodes::over(&[way.clone(), way]));
        let to_ledger = Proxy::start(nodes.ledger_address(), 0).await;
        tokio::task::block_in_place(|| nodes.add_behind(&old.url(), &to_ledger));
        let clients = nodes.clients();
        let license = License::make(&nodes.harnesses[0].admin(), 1, Some(ttl.as_secs())).await;
        let ann = clients[2].acquire(&license.key, "ann").await.expect(201)["session_id"].clone();
        let taken = Instant::now();
        Self { nodes, clients, license, ann, taken, old, to_redis, to_ledger }
    }

    fn left_behind(&self) -> &Harness {
        &self.nodes.harnesses[2]
    }

    /// Moves two nodes to a new Redis, waits for a raised epoch, and returns the new Redis.
    async fn others_go(&self) -> Redis {
        let (epochs, went) = (self.nodes.epochs().await, Instant::now());
        let new = usurper(&self.old);
        self.to_redis.redirect(([127, 0, 0, 1], new.port()).into());
        while self.nodes.epochs().await == epochs {
            assert!(went.elapsed() < GIVEN_MAX, "no new epoch begins");
            tokio::time::sleep(PAUSE).await;
        }
        new
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_slept_through_a_new_epoch_renews_nobody_by_the_old_one() {
    for _ in 0..TRIES_MAX {
        if a_late_heartbeat_is_refused().await {
            return;
        }
        println!("the machine was too slow for this to tell anything");
    }
    panic!("the machine is too slow for this");
}

/// Returns `false` if the machine was too slow for a verdict.
async fn a_late_heartbeat_is_refused() -> bool {
    // Longer than the other nodes take on a busy machine, so the session is still live when the node wakes up.
    const TTL: Duration = Duration::from_secs(30);
    let mut scene = Scene::open(TTL).await;
    let bob = "bob";
    signal(scene.left_behind(), Signal::STOP);
    let _new = scene.others_go().await;
    // A claim is denied with 403 as soon as the new epoch is served.
    answered(async || scene.clients[0].acquire(&scene.license.key, bob).await).await.expect(403);
    let counted_anew = Instant::now();
    scene.to_ledger.set(Network::Silent);
    let waking = async {
        signal(scene.left_behind(), Signal::CONT);
        tokio::time::sleep(AT_ONCE).await;
        scene.to_ledger.set(Network::Well);
    };
    let (late, ()) = tokio::join!(scene.clients[2].heartbeat(&scene.ann), waking);
    let was_in_time = scene.taken.elapsed() < TTL;

    while scene.clients[1].acquire(&scene.license.key, bob).await.status != 201 {
        assert!(counted_anew.elapsed() < GIVEN_MAX, "nobody renewed it, and it went on");
        tokio::time::sleep(PAUSE).await;
    }
    println!("another got the seat {:?} after the new epoch was served", counted_anew.elapsed());
    let mut left_behind = scene.nodes.harnesses.pop().expect("a node");
    let (status, log) = left_behind.stop();
    assert_eq!(status.code(), Some(0), "{log}");
    drop(scene.nodes.close());
    if !was_in_time || (late.status == 200 && log.contains(LEDGER_SLOW)) {
        return false;
    }
    assert_eq!(late.status, 503, "told that the seat is ann's for {TTL:?} more: {:#}", late.body);
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_decided_by_an_old_epoch_never_gets_on_record() {
    const TTL: Duration = Duration::from_secs(10);
    let scene = Scene::open(TTL).await;
    let (clients, is_over) = (&scene.clients, AtomicBool::new(false));
    // Without the ledger the remaining node learns of no new epoch, and its decisions wait for their commit.
    scene.to_ledger.set(Network::Silent);
    let story = async {
        let new = scene.others_go().await;
        // Ann renews at another node. In the old Redis her TTL runs out, and Bob gets her seat: the last of her
        // heartbeats came to the old Redis before the others went.
        tokio::time::sleep(TTL + AT_ONCE).await;
        let hearing = async {
            tokio::time::sleep(AT_ONCE).await;
            scene.to_ledger.set(Network::Well);
        };
        let (bob, ()) = tokio::join!(clients[2].acquire(&scene.license.key, "bob"), hearing);
        // Enough time for every waiting commit to arrive.
        tokio::time::sleep(AT_ONCE).await;
        // Read while Ann goes on: she is never late.
        let books = Books::read(&scene.nodes.ledger()).await;
        is_over.store(true, Relaxed);
        (bob, books, new)
    };
    let ann_goes_on = async {
        while !is_over.load(Relaxed) {
            let beat = clients[0].heartbeat(&scene.ann).await;
            assert!([200, 503].contains(&beat.status), "{beat:?}");
            tokio::time::sleep(PAUSE).await;
        }
        answered(async || clients[0].heartbeat(&scene.ann).await).await.expect(200);
    };
    let ((bob, books, _new), ()) = tokio::join!(story, ann_goes_on);
    assert_eq!(bob.status, 503, "the seat is ann's: {:#}", bob.body);
    assert!(books.story(&text(&scene.ann)).end.is_none(), "she was never late");
    assert_eq!(books.stories().count(), 1, "nobody else was admitted");
    drop(scene.nodes.close());
}
