//! A Redis Cluster: masters with equal shares of the slots, and replicas added by a test.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::{Redis, RedisSetup};
use crate::clock::Clock;

/// Time limit for the agreement of the nodes, on a machine that is busy with other tests.
const AGREEMENT_MAX: Duration = Duration::from_secs(120);

/// The `cluster-node-timeout` of a cluster with promotions, in milliseconds. A master that gets no processor
/// for longer counts as failed.
const PROMOTES_AFTER_MILLIS: u32 = 5_000;

/// The `cluster-node-timeout` of a cluster without promotions, in milliseconds: longer than any test.
const NEVER_PROMOTES_MILLIS: u32 = 600_000;

const SLOTS: usize = 16_384;

/// Time limit for the move of a key, in milliseconds.
const MIGRATE_MILLIS_MAX: u32 = 5_000;

/// Masters with equal shares of the slots, and the replicas added later.
#[derive(Debug)]
pub struct RedisCluster {
    nodes: Vec<Redis>,
    setup: RedisSetup,
}

impl RedisCluster {
    /// Starts `masters` masters with the configuration `setup`, and waits until the cluster serves. No master
    /// counts as failed during a test, whether frozen by the test or starved on a busy machine.
    pub fn start(masters: usize, setup: &RedisSetup) -> Self {
        Self::start_promoting(masters, setup).never_promoting()
    }

    /// Like [`start`](Self::start), with a master by each clock.
    pub fn start_by(clocks: &[Arc<Clock>]) -> Self {
        let setup = RedisSetup::default().setting("cluster-enabled yes");
        let masters = clocks.iter().map(|clock| setup.clone().clock(clock)).collect();
        Self::start_masters(masters, setup).never_promoting()
    }

    fn never_promoting(self) -> Self {
        for node in &self.nodes {
            let patience =
                redis::cmd("CONFIG").arg("SET").arg("cluster-node-timeout").arg(NEVER_PROMOTES_MILLIS).take();
            node.ask::<()>(patience);
        }
        self
    }

    /// Like [`start`](Self::start), with a timeout after which a silent master counts as failed, and a replica
    /// is promoted.
    pub fn start_promoting(masters: usize, setup: &RedisSetup) -> Self {
        let timeout = format!("cluster-node-timeout {PROMOTES_AFTER_MILLIS}");
        let setup = setup.clone().setting("cluster-enabled yes").setting(&timeout);
        Self::start_masters(vec![setup.clone(); masters], setup)
    }

    fn start_masters(masters: Vec<RedisSetup>, setup: RedisSetup) -> Self {
        let nodes: Vec<_> = masters.into_iter().map(RedisSetup::start).collect();
        let masters = nodes.len();
        for (n, node) in nodes.iter().enumerate() {
            let mut slots = redis::cmd("CLUSTER");
            slots.arg("ADDSLOTSRANGE").arg(n * SLOTS / masters).arg((n + 1) * SLOTS / masters - 1);
            node.ask::<()>(slots);
            let mut epoch = redis::cmd("CLUSTER");
            epoch.arg("SET-CONFIG-EPOCH").arg(n + 1);
            node.ask::<()>(epoch);
            let mut meet = redis::cmd("CLUSTER");
            meet.arg("MEET").arg("127.0.0.1").arg(node.port).arg(node.bus_port);
            nodes[0].ask::<()>(meet);
        }
        let cluster = Self { nodes, setup };
        cluster.wait_until_it_serves();
        cluster
    }

    /// Adds a replica of the node `of`, and waits until the replica has caught up. Returns the replica's
    /// index in `nodes`.
    pub fn add_replica(&mut self, of: usize) -> usize {
        let replica = self.setup.clone().setting("repl-diskless-sync-delay 0").start();
        let mut meet = redis::cmd("CLUSTER");
        meet.arg("MEET").arg("127.0.0.1").arg(replica.port).arg(replica.bus_port);
        self.nodes[0].ask::<()>(meet);
        self.nodes.push(replica);
        self.wait_until_it_serves();
        let (replica, master) = (self.nodes.len() - 1, self.nodes[of].cluster::<String>("MYID"));
        let mut replicate = redis::cmd("CLUSTER");
        replicate.arg("REPLICATE").arg(master);
        self.nodes[replica].ask::<()>(replicate);
        self.wait_until("the replica has caught up", replica, "master_link_status:up");
        replica
    }

    /// Waits until the node serves as a master.
    pub fn wait_until_master(&self, node: usize) {
        self.wait_until("the replica is promoted", node, "role:master");
    }

    /// Waits until the node is a replica and has caught up.
    pub fn wait_until_replica(&self, node: usize) {
        self.wait_until("it is a replica", node, "master_link_status:up");
    }

    fn wait_until(&self, what: &str, node: usize, line: &str) {
        let started = Instant::now();
        loop {
            let told: String = self.nodes[node].ask(redis::cmd("INFO").arg("replication").take());
            if told.contains(line) {
                return;
            }
            assert!(started.elapsed() < AGREEMENT_MAX, "not in time: {what}: {told}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the nodes.
    pub fn nodes(&self) -> &[Redis] {
        &self.nodes
    }

    /// Returns the nodes, to stop and restart them.
    pub fn nodes_mut(&mut self) -> &mut [Redis] {
        &mut self.nodes
    }

    /// Returns the URLs of the nodes.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Redis::url).collect()
    }

    /// Returns the URL of the cluster, with every node.
    pub fn url(&self) -> String {
        let nodes: Vec<_> = self.nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        format!("redis+cluster://{}", nodes.join(","))
    }

    /// Moves every slot with a key from the master `from` to the master `to`, key by key, as for a master
    /// leaving service. Waits for `pause` after each key.
    pub fn move_all(&self, from: usize, to: usize, pause: Duration) {
        let (source, target) = (&self.nodes[from], &self.nodes[to]);
        let (source_id, target_id) = (source.cluster::<String>("MYID"), target.cluster::<String>("MYID"));
        let keys: Vec<Vec<u8>> = source.ask(redis::cmd("KEYS").arg("*").take());
        let slot_of = |key: &Vec<u8>| source.ask::<u16>(redis::cmd("CLUSTER").arg("KEYSLOT").arg(key).take());
        let slots: BTreeSet<u16> = keys.iter().map(slot_of).collect();
        for slot in slots {
            target.set_slot(slot, "IMPORTING", &source_id);
            source.set_slot(slot, "MIGRATING", &target_id);
            loop {
                let mut some = redis::cmd("CLUSTER");
                some.arg("GETKEYSINSLOT").arg(slot).arg(1);
                let Some(key) = source.ask::<Vec<Vec<u8>>>(some).pop() else { break };
                let mut migrate = redis::cmd("MIGRATE");
                migrate.arg("127.0.0.1").arg(target.port).arg(key).arg(0).arg(MIGRATE_MILLIS_MAX);
                source.ask::<()>(migrate);
                thread::sleep(pause);
            }
            for node in [target, source] {
                node.set_slot(slot, "NODE", &target_id);
            }
        }
    }

    /// Waits until every node knows every other node and every slot is served.
    pub fn wait_until_it_serves(&self) {
        let started = Instant::now();
        let known = format!("cluster_known_nodes:{}", self.nodes.len());
        for node in &self.nodes {
            loop {
                let mut info = redis::cmd("CLUSTER");
                info.arg("INFO");
                let told: String = node.ask(info);
                if told.contains("cluster_state:ok") && told.contains(&known) {
                    break;
                }
                assert!(started.elapsed() < AGREEMENT_MAX, "the nodes do not agree: {told}");
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
}

impl Redis {
    /// Returns the node's answer to the `CLUSTER` subcommand `what`.
    fn cluster<T: redis::FromRedisValue>(&self, what: &str) -> T {
        self.ask(redis::cmd("CLUSTER").arg(what).take())
    }

    fn set_slot(&self, slot: u16, how: &str, node: &str) {
        self.ask::<()>(redis::cmd("CLUSTER").arg("SETSLOT").arg(slot).arg(how).arg(node).take());
    }
}
