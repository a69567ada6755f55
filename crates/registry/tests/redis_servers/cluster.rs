//! Slots that move between the masters of a cluster, followed by the registry.

use std::time::Instant;

use seatkeeper_registry::{Error, Rebuild as _};
use seatkeeper_testbed::redis::{Redis, RedisCluster, RedisSetup};

use crate::node::{Node, REACHED_MAX};

#[tokio::test]
async fn a_bucket_is_found_where_its_slot_has_moved_and_served_once_it_was_filled_there() {
    let cluster = RedisCluster::start(3, &RedisSetup::default());
    let node = Node::over(cluster.url().parse().expect("a URL")).await;
    let pool = node.pool().await;
    node.admit(&pool, "ann").await;
    let at = usize::from(pool.bucket().number());
    let before = node.registry.conditions().await[at].server.clone().expect("it is reached");

    let head = format!("{:03}:head", pool.bucket().number());
    let mut keys =
        cluster.nodes().iter().flat_map(|node| node.ask::<Vec<String>>(redis::cmd("KEYS").arg("*").take()));
    let head = keys.find(|key| key.ends_with(&head)).expect("a master has it");
    let slot: u32 = cluster.nodes()[0].ask(redis::cmd("CLUSTER").arg("KEYSLOT").arg(head).take());
    let holds = |node: &Redis| {
        let command = redis::cmd("CLUSTER").arg("COUNTKEYSINSLOT").arg(slot).take();
        node.ask::<u32>(command) > 0
    };
    let from = cluster.nodes().iter().position(holds).expect("a master has it");
    let to = (from + 1) % cluster.nodes().len();
    // The old master loses its data.
    cluster.nodes()[from].ask::<()>(redis::cmd("FLUSHALL"));
    let id = |n: usize| cluster.nodes()[n].ask::<String>(redis::cmd("CLUSTER").arg("MYID").take());
    let set_slot = |n: usize, how: &str, id: String| {
        cluster.nodes()[n].ask::<()>(redis::cmd("CLUSTER").arg("SETSLOT").arg(slot).arg(how).arg(id).take());
    };
    // The importing master takes the slot first. A master that takes a slot without `IMPORTING` has no newer
    // configuration epoch than the old master, and the nodes would disagree for a while.
    set_slot(to, "IMPORTING", id(from));
    for n in [to, from] {
        set_slot(n, "NODE", id(to));
    }

    let refused = node.claim(&pool, "bob").await;
    assert!(
        matches!(refused, Err(Error::NotServing { .. })),
        "it is sent on, and nothing is there: {refused:?}"
    );
    let started = Instant::now();
    while node.registry.conditions().await[at].server.as_ref().is_none_or(|server| *server == before) {
        assert!(started.elapsed() < REACHED_MAX, "the slot's new master is not found");
    }
    node.serve(2).await;
    let pool = node.pool().await;
    node.admit(&pool, "bob").await;
    assert!(holds(&cluster.nodes()[to]));
}
