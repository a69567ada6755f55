//! A Sentinel that monitors a primary and promotes its replica after a failure.

use std::thread;
use std::time::{Duration, Instant};

use super::{Redis, RedisSetup};

/// Time limit for the discovery of a replica. A Sentinel that gets no processor for seconds does nothing for
/// half a minute (`TILT` mode).
const KNOWN_MAX: Duration = Duration::from_secs(120);

/// A Sentinel with a quorum of 1.
#[derive(Debug)]
pub struct Sentinel {
    process: Redis,
    name: String,
}

impl Sentinel {
    /// Monitors `primary` under `name`, and waits until the Sentinel knows a replica. A primary silent for
    /// half a second counts as down.
    pub fn watch(primary: &Redis, name: &str) -> Self {
        let sentinel = Self::watch_since(primary, name, 0);
        sentinel.wait_until_it_knows_a_replica();
        sentinel
    }

    /// Monitors `primary` under `name`, as the result of the failover number `config_epoch`.
    pub fn watch_since(primary: &Redis, name: &str, config_epoch: u64) -> Self {
        let mut setup = RedisSetup { is_sentinel: true, ..RedisSetup::default() };
        for line in [
            format!("sentinel monitor {name} 127.0.0.1 {} 1", primary.port()),
            format!("sentinel down-after-milliseconds {name} 500"),
            format!("sentinel failover-timeout {name} 3000"),
            format!("sentinel config-epoch {name} {config_epoch}"),
        ] {
            setup = setup.setting(&line);
        }
        Self { process: setup.start(), name: name.to_owned() }
    }

    /// Waits until the Sentinel knows a replica to promote.
    pub fn wait_until_it_knows_a_replica(&self) {
        let started = Instant::now();
        while self.replicas() == 0 {
            assert!(started.elapsed() < KNOWN_MAX, "the Sentinel does not find the replica");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the URL for finding the primary through the Sentinel.
    pub fn url(&self) -> String {
        format!("redis+sentinel://{}/{}", self.address(), self.name)
    }

    /// Returns host and port.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.process.port())
    }

    /// Freezes the Sentinel with its connections open.
    pub fn pause(&self) {
        self.process.pause();
    }

    /// Lets a frozen Sentinel run on.
    pub fn resume(&self) {
        self.process.resume();
    }

    /// Restricts the Sentinel to the user `user` with `password`.
    pub fn answers_only(&self, user: &str, password: &str) {
        let acl = |user: &str, rules: &[&str]| {
            self.process.ask::<()>(redis::cmd("ACL").arg("SETUSER").arg(user).arg(rules).take());
        };
        acl(user, &["on", &format!(">{password}"), "allkeys", "allchannels", "allcommands"]);
        acl("default", &["off"]);
    }

    /// Returns the number of replicas fit for promotion.
    fn replicas(&self) -> usize {
        let mut ask = redis::cmd("SENTINEL");
        ask.arg("REPLICAS").arg(&self.name);
        let told: Vec<Vec<String>> = self.process.ask(ask);
        let can_be_promoted = |replica: &&Vec<String>| {
            let linked = replica.windows(2).any(|pair| pair[0] == "master-link-status" && pair[1] == "ok");
            linked && !replica.windows(2).any(|pair| pair[0] == "flags" && pair[1].contains("down"))
        };
        told.iter().filter(can_be_promoted).count()
    }
}

impl Redis {
    /// Starts a replica of `primary`, and waits until the replica has caught up.
    pub fn replica_of(primary: &Self) -> Self {
        let line = format!("replicaof 127.0.0.1 {}", primary.port());
        let replica = RedisSetup::default().setting(&line).setting("repl-diskless-sync-delay 0").start();
        let started = Instant::now();
        let mut role = redis::cmd("INFO");
        role.arg("replication");
        while !replica.ask::<String>(role.clone()).contains("master_link_status:up") {
            assert!(started.elapsed() < KNOWN_MAX, "the replica does not reach its primary");
            thread::sleep(Duration::from_millis(20));
        }
        replica
    }
}
