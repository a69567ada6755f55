//! A node starts while the older nodes are cut off from PostgreSQL, or dead. The older nodes may vouch for each
//! other over the roll in Redis, out of the new node's sight. The new node takes nothing over until the older nodes
//! certainly have no lease, or an operator says so.

use std::time::{Duration, Instant};

use seatkeeper_testbed::proxy::{Network, Proxy};
use seatkeeper_testbed::redis::{Memory, Redis};
use serde_json::Value;

use super::scene_again::{judged, played};
use super::support::{Nodes, answered, renewed, seated};
use crate::harness::{Client, run};
use crate::support::books::opened;
use crate::support::scene::License;
use crate::until::within;

const TTL: Duration = Duration::from_secs(4);

/// Longer than a takeover takes: a circuit breaker, a fill, and a TTL after it.
const WATCHED: Duration = Duration::from_secs(20);

/// Time limit for a takeover, and for forgetting dead nodes.
const TAKEN_OVER_MAX: Duration = Duration::from_secs(40);

const PAUSE: Duration = Duration::from_millis(200);

/// Two old nodes, each with its own proxies. Ann holds the only seat of a license.
struct Scene {
    redis: Redis,
    nodes: Nodes,
    to_redis: Proxy,
    to_postgres: Proxy,
    license: License,
    ann: Value,
}

impl Scene {
    async fn open() -> Self {
        let redis = Redis::start();
        let mut nodes = tokio::task::block_in_place(|| Nodes::over(&[]));
        let to_postgres = Proxy::start(nodes.ledger_address(), 0).await;
        tokio::task::block_in_place(|| {
            (0..2).for_each(|_| nodes.add_behind(&redis.url(), &to_postgres));
        });
        let to_redis = Proxy::start(([127, 0, 0, 1], redis.port()).into(), 0).await;
        let license = License::make(&nodes.harnesses[0].admin(), 1, Some(TTL.as_secs())).await;
        let ann = seated(&nodes.clients()[0], &license.key, "ann").await["session_id"].clone();
        Self { redis, nodes, to_redis, to_postgres, license, ann }
    }

    /// Adds a node that reaches PostgreSQL, and Redis by a proxy of its own.
    fn adds_newcomer(&mut self) -> Client {
        let url = format!("redis://{}", self.to_redis.address());
        tokio::task::block_in_place(|| self.nodes.add(&url));
        self.nodes.clients().remove(2)
    }

    /// Stops the newcomer, after the old nodes were killed, and proves the audit log.
    fn ends(mut self) {
        self.nodes.harnesses.drain(..2);
        drop(self.nodes.close());
    }

    async fn takes(&self, client: &Client, machine: &str) -> u16 {
        client.acquire(&self.license.key, machine).await.status
    }

    /// Checks that the newcomer is unready, and tells the operator of the older nodes.
    async fn is_held_back(&self, newcomer: &Client) {
        within(TAKEN_OVER_MAX, "the newcomer tells why it does not serve", async || {
            let answer = newcomer.get("/readyz").await;
            let text = answer.body.to_string();
            if answer.status == 503 && text.contains("seatkeeper repair nodes") { Ok(()) } else { Err(text) }
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_without_redis_takes_no_seat_from_nodes_that_vouch_for_each_other() {
    played(a_newcomer_without_redis_takes_no_seat).await;
}

/// Returns `false` if an old node stood still, or if ann was renewed too seldom to keep her seat. The old nodes do
/// not reach PostgreSQL, so a lapsed lease would stay lapsed.
async fn a_newcomer_without_redis_takes_no_seat() -> bool {
    let mut scene = Scene::open().await;
    let old = scene.nodes.clients();
    scene.to_postgres.set(Network::Silent);
    scene.to_redis.set(Network::Silent);
    // The old nodes go on without the ledger for longer than a lease.
    let (cut_off, mut beat) = (Instant::now(), 503);
    while cut_off.elapsed() < TTL || (beat == 503 && cut_off.elapsed() < TAKEN_OVER_MAX) {
        beat = old[0].heartbeat(&scene.ann).await.status;
        assert!([200, 503].contains(&beat), "a heartbeat is answered with {beat}");
        tokio::time::sleep(PAUSE).await;
    }
    let newcomer = scene.adds_newcomer();
    let (started, mut renewals, mut renewed_at) = (Instant::now(), 0, Instant::now());
    // On a busy machine the old nodes may be late to vouch for each other.
    while started.elapsed() < WATCHED || (renewals == 0 && started.elapsed() < TAKEN_OVER_MAX) {
        let sent = Instant::now();
        let beat = old[0].heartbeat(&scene.ann).await;
        assert!([200, 503].contains(&beat.status), "{beat:?}");
        if beat.status == 200 {
            (renewals, renewed_at) = (renewals + 1, sent);
        }
        assert_eq!(scene.takes(&newcomer, "bob").await, 503, "ann has the seat, renewed {renewals} times");
        tokio::time::sleep(PAUSE).await;
    }
    scene.is_held_back(&newcomer).await;

    scene.to_redis.set(Network::Well);
    scene.to_postgres.set(Network::Well);
    let back = answered(async || newcomer.heartbeat(&scene.ann).await).await;
    if back.status == 410 && renewed_at.elapsed() >= TTL {
        drop(scene.nodes.close());
        return false;
    }
    back.expect(200);
    answered(async || newcomer.acquire(&scene.license.key, "bob").await).await.expect(403);
    let vouched = renewals > 0;
    judged(
        scene.nodes,
        vouched.then_some(()).ok_or_else(|| "the old nodes do not vouch for each other".to_owned()),
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_takes_over_from_dead_nodes_once_an_operator_has_forgotten_them() {
    let mut scene = Scene::open().await;
    let names = [0, 1].map(|node| {
        let node = &scene.nodes.harnesses[node];
        format!("/{}/{} (", node.url().trim_start_matches("http://"), node.pid())
    });
    scene.to_redis.set(Network::Silent);
    (0..2).for_each(|node| scene.nodes.kill(node));
    let newcomer = scene.adds_newcomer();
    scene.is_held_back(&newcomer).await;
    let ledger = scene.nodes.ledger_url().to_owned();
    let repair = |further: &[&str]| {
        let args = [&["repair", "nodes", "--ledger", &ledger], further].concat();
        let output = tokio::task::block_in_place(|| run(&args));
        assert!(output.status.success(), "{}{}", output.stdout, output.stderr);
        output.stdout
    };
    let listed = repair(&[]);
    assert_eq!(listed.matches("last seen").count(), 2, "{listed}");
    assert!(names.iter().all(|name| listed.contains(name)), "{names:?} {listed}");
    assert_eq!(scene.takes(&newcomer, "bob").await, 503, "listing changes nothing");
    let forgotten = repair(&["--apply"]);
    assert!(forgotten.contains("2 nodes were forgotten"), "{forgotten}");
    within(TAKEN_OVER_MAX, "the seat of a silent holder is given away", async || {
        match scene.takes(&newcomer, "bob").await {
            201 => Ok(()),
            other => Err(other.to_string()),
        }
    })
    .await;
    let listed = repair(&[]);
    assert!(listed.contains("no node to forget"), "{listed}");
    scene.ends();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_newcomer_that_reaches_redis_forgets_dead_nodes_and_takes_over() {
    let mut scene = Scene::open().await;
    (0..2).for_each(|node| scene.nodes.kill(node));
    // Redis must be filled anew, so the newcomer must raise the epochs.
    tokio::task::block_in_place(|| {
        scene.redis.kill();
        scene.redis.start_again(Memory::Lost);
    });
    let newcomer = scene.adds_newcomer();
    renewed(&newcomer, &scene.ann).await;
    let ledger = opened(scene.nodes.ledger()).await;
    assert_eq!(ledger.nodes().await.expect("the nodes").len(), 1, "the dead nodes are forgotten");
    scene.ends();
}
