//! Nodes over a shared Redis and a shared ledger, and helpers that wait until the nodes serve.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use seatkeeper_core::epoch_counter;
use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_ledger::{Location, PostgresUrl};
use seatkeeper_testbed::postgres::{self, Database};
use seatkeeper_testbed::proxy::Proxy;
use seatkeeper_testbed::redis::{Redis, RedisSetup};
use serde_json::Value;

use super::trial::ttl_seconds;
use crate::harness::{Answer, BIN, Client, Doors, Harness};
use crate::support::books::{opened, read};
use crate::support::knobs::lapses_are_bounded;
use crate::until::within;

/// The counters of a copy of a ledger jump by more. A first copy starts at the seconds since 1970, a further copy 2^20
/// milliseconds above the last copy. No test raises a bucket as often.
const COPY_JUMP_MIN: u64 = 500;

/// Time limit for a bucket to be served: on a busy machine, a fallback and the way back take minutes.
pub(crate) const SERVED_WAIT_MAX: Duration = Duration::from_secs(240);

const PAUSE: Duration = Duration::from_millis(20);

/// Devices with `durability = "ledger"`: a Redis without memory loses no answered session.
const DEVICES_ON_RECORD: (&str, &str) = ("DEVICES_DURABILITY", "ledger");

/// The time for which a node answers by an epoch after a raise: see `docs/failover.md`.
const EPOCH_LEASE: Duration = Duration::from_secs(2);

/// Time limit of `docs/operations.md` for a node to be unready, from a fault after which more than half of its
/// buckets are not served.
const UNREADY_WITHIN: Duration = Duration::from_secs(5);

/// The most by which [`UNREADY_WITHIN`] is stretched on a busy machine: a node waits for timers, not for processors.
const UNREADY_STRETCH_MAX: f64 = 4.0;

/// Longer than any lease, and longer than a dead node counts as live.
const BEYOND_ANY_LEASE: Duration = Duration::from_secs(8);

/// The number of raises that a machine may cause which stands still, or is slow: away from a store, and back.
const RAISES_OF_A_BUSY_MACHINE: u64 = 2;

/// Nodes with a shared ledger in PostgreSQL and a shared token key.
pub(crate) struct Nodes {
    pub(crate) harnesses: Vec<Harness>,
    ledger: String,
    /// The database on the PostgreSQL shared by tests; `None` if the test has its own server.
    database: Option<Database>,
    settings: &'static [(&'static str, &'static str)],
    /// Proxies by which clients reach the nodes; empty if clients reach the nodes directly.
    fronts: Vec<Proxy>,
    /// The node is embedded, with the ledger in its data directory.
    is_embedded: bool,
}

impl Nodes {
    /// Starts a node over each registry.
    pub(crate) fn over(registries: &[String]) -> Self {
        Self::over_with(registries, &[])
    }

    /// Starts a node over each registry, with further settings.
    pub(crate) fn over_with(
        registries: &[String],
        settings: &'static [(&'static str, &'static str)],
    ) -> Self {
        let database = postgres::database();
        let mut nodes = Self { settings, ..Self::on(database.url()) };
        nodes.database = Some(database);
        registries.iter().for_each(|registry| nodes.add(registry));
        nodes
    }

    /// Starts `count` nodes without Redis.
    pub(crate) fn in_ledger(count: usize) -> Self {
        Self::in_ledger_with(count, &[])
    }

    /// Starts `count` nodes without Redis, with further settings.
    pub(crate) fn in_ledger_with(count: usize, settings: &'static [(&'static str, &'static str)]) -> Self {
        let mut nodes = Self::over_with(&[], settings);
        let ledger = nodes.ledger.clone();
        (0..count).for_each(|_| nodes.add(&ledger));
        nodes
    }

    /// Returns an empty cluster with this ledger.
    pub(crate) fn on(ledger: String) -> Self {
        let (harnesses, fronts) = (Vec::new(), Vec::new());
        Self { harnesses, ledger, database: None, settings: &[], fronts, is_embedded: false }
    }

    /// Starts a single embedded node, with these environment variables.
    pub(crate) fn embedded(environment: &[(&str, PathBuf)]) -> Self {
        let mut nodes = Self { is_embedded: true, ..Self::on(String::new()) };
        let devices_ttl = ttl_seconds().to_string();
        let settings = [DEVICES_ON_RECORD, ("DEVICES_TTL_SECONDS", &devices_ttl)];
        nodes.harnesses.push(Harness::open_in(environment, &settings));
        nodes
    }

    /// Returns an empty cluster with this ledger and further settings.
    pub(crate) fn on_with(ledger: String, settings: &'static [(&'static str, &'static str)]) -> Self {
        Self { settings, ..Self::on(ledger) }
    }

    /// Adds a node over this registry.
    pub(crate) fn add(&mut self, registry: &str) {
        self.add_in(&[], registry);
    }

    /// Adds a node over this registry, with further environment variables.
    pub(crate) fn add_in(&mut self, environment: &[(&str, PathBuf)], registry: &str) {
        let harness = self.harness(BIN.as_ref(), environment, registry, &self.ledger);
        self.harnesses.push(harness);
    }

    /// Adds a node over this registry. `program` may be another version of the server.
    pub(crate) fn add_as(&mut self, program: &Path, registry: &str) {
        let harness = self.harness(program, &[], registry, &self.ledger);
        self.harnesses.push(harness);
    }

    /// Adds a node without Redis that reaches the ledger through a proxy.
    pub(crate) fn add_alone_behind(&mut self, ledger: &Proxy) {
        let by_proxy = self.ledger.replace(&self.ledger_address().to_string(), &ledger.address().to_string());
        let harness = self.harness(BIN.as_ref(), &[], &by_proxy, &by_proxy);
        self.harnesses.push(harness);
    }

    /// Adds a node over this registry that reaches the ledger through a proxy.
    pub(crate) fn add_behind(&mut self, registry: &str, ledger: &Proxy) {
        let by_proxy = self.ledger.replace(&self.ledger_address().to_string(), &ledger.address().to_string());
        let harness = self.harness(BIN.as_ref(), &[], registry, &by_proxy);
        self.harnesses.push(harness);
    }

    fn harness(
        &self,
        program: &Path,
        environment: &[(&str, PathBuf)],
        registry: &str,
        ledger: &str,
    ) -> Harness {
        let devices_ttl = ttl_seconds().to_string();
        let mut settings = vec![
            ("REGISTRY_URL", registry),
            ("LEDGER_URL", ledger),
            ("AUTH_ALGORITHM", "HS256"),
            ("AUTH_SECRET", "a secret that all nodes of a test know"),
            DEVICES_ON_RECORD,
            ("DEVICES_TTL_SECONDS", &devices_ttl),
        ];
        settings.extend(self.settings);
        Harness::open_as(program, environment, &settings)
    }

    /// Returns a client at each node.
    pub(crate) fn clients(&self) -> Vec<Client> {
        self.harnesses.iter().map(|harness| harness.client("crowd")).collect()
    }

    /// Returns the addresses of the nodes.
    pub(crate) fn doors(&self) -> Doors {
        if self.fronts.is_empty() {
            return Doors::new(self.harnesses.iter().map(|harness| harness.url().to_owned()));
        }
        Doors::new(self.fronts.iter().map(|front| format!("http://{}", front.address())))
    }

    /// Puts a proxy in front of each node, so that a node keeps its address when it is started again.
    pub(crate) async fn keep_addresses(&mut self) {
        for harness in &self.harnesses {
            self.fronts.push(Proxy::start(address_of(harness), 0).await);
        }
    }

    /// Kills a node with SIGKILL.
    pub(crate) fn kill(&mut self, node: usize) {
        tokio::task::block_in_place(|| self.harnesses[node].kill());
    }

    /// Starts a killed node again, at its address for clients.
    pub(crate) fn start_again(&mut self, node: usize) {
        tokio::task::block_in_place(|| self.harnesses[node].start());
        self.fronts[node].redirect(address_of(&self.harnesses[node]));
    }

    /// Returns the address of the ledger's server.
    pub(crate) fn ledger_address(&self) -> SocketAddr {
        let address = self.ledger.split(['@', '/']).nth(3);
        address.and_then(|text| text.parse().ok()).expect("postgres://USER@ADDRESS:PORT/DATABASE")
    }

    /// Returns the URL of the ledger.
    pub(crate) fn ledger_url(&self) -> &str {
        &self.ledger
    }

    /// Returns the location of the ledger.
    pub(crate) fn ledger(&self) -> Location {
        if self.is_embedded {
            return self.harnesses[0].ledger();
        }
        let ledger: PostgresUrl = self.ledger.parse().expect("the URL of a database");
        ledger.into()
    }

    /// Reads the ledger at this URL from now on. The nodes reach the ledger through proxies.
    pub(crate) fn read_ledger_in(&mut self, ledger: String) {
        self.ledger = ledger;
    }

    /// Returns the sum of the epochs of all buckets in the ledger. The sum changes if a bucket is raised.
    pub(crate) async fn epochs(&self) -> u64 {
        let ledger = opened(self.ledger()).await;
        read(async || ledger.buckets().await).await.iter().map(|row| row.epoch).sum()
    }

    /// Waits until the epoch of every bucket was raised in the present ledger, and no node answers by an
    /// earlier epoch.
    pub(crate) async fn ledger_rules(&self) {
        let ledger = opened(self.ledger()).await;
        within(SERVED_WAIT_MAX, "every epoch was raised in this ledger", async || {
            tokio::time::sleep(PAUSE).await;
            let rows = read(async || ledger.buckets().await).await;
            let elsewhere = rows.iter().filter(|row| !row.was_raised_here).count();
            if elsewhere == 0 { Ok(()) } else { Err(format!("{elsewhere} buckets were not raised")) }
        })
        .await;
        tokio::time::sleep(EPOCH_LEASE).await;
    }

    /// Waits until Redis serves every bucket, after a fallback.
    pub(crate) async fn redis_serves_again(&self) {
        if self.is_embedded {
            return;
        }
        let ledger = opened(self.ledger()).await;
        within(SERVED_WAIT_MAX, "Redis serves every bucket", async || {
            tokio::time::sleep(PAUSE).await;
            let rows = read(async || ledger.buckets().await).await;
            let elsewhere = rows.iter().filter(|row| row.mode != BucketMode::Registry).count();
            if elsewhere == 0 { Ok(()) } else { Err(format!("{elsewhere} buckets are elsewhere")) }
        })
        .await;
    }

    /// Fails the test, with the logs of the nodes, if a bucket was raised more than `most` times since
    /// `before`. A machine without a processor for a node or a store for seconds is a fault of its own, which raises buckets
    /// as well: unless lapses are bounded, [`RAISES_OF_A_BUSY_MACHINE`] more are accepted.
    pub(crate) async fn raised_at_most(&mut self, most: u64, before: &[u64]) {
        let raised = self.raised(before).await;
        let of_machine = if lapses_are_bounded() { 0 } else { RAISES_OF_A_BUSY_MACHINE };
        if raised > most + of_machine {
            let logs: String = self.harnesses.iter_mut().map(|harness| harness.stop().1).collect();
            panic!("a bucket was raised {raised} times, and not {most}:\n{logs}");
        }
    }

    /// Returns the largest number of raises of a bucket since `before`.
    pub(crate) async fn raised(&self, before: &[u64]) -> u64 {
        let after = epochs_per_bucket(self).await;
        let lowest = after.iter().map(|&after| epoch_counter(after)).min().unwrap_or_default();
        let highest_before = before.iter().map(|&before| epoch_counter(before)).max().unwrap_or_default();
        // A restored or promoted ledger may have forgotten raises. The jump of its counters is the first raise.
        let is_copied = lowest > highest_before + COPY_JUMP_MIN;
        let before_copy = if is_copied { lowest - 1 } else { 0 };
        let raised = after.iter().zip(before).map(|(&after, &before)| {
            epoch_counter(after).saturating_sub(epoch_counter(before).max(before_copy))
        });
        raised.max().unwrap_or_default()
    }

    /// Returns the latest registry time in the ledger, as the span since 1970.
    pub(crate) async fn last_recorded(&self) -> Duration {
        let ledger = opened(self.ledger()).await;
        let last = read(async || ledger.last_time().await).await.expect("something is on record");
        Duration::from_millis(last.as_millis())
    }

    /// Stops all nodes and proves the audit log. Log lines do not fail the test. The ledger is dropped with
    /// the result.
    pub(crate) fn close(mut self) -> Closed {
        for harness in &mut self.harnesses {
            let (status, log) = harness.stop();
            assert_eq!(status.code(), Some(0), "{log}");
        }
        self.harnesses[0].prove();
        Closed { ledger: self.ledger(), _database: self.database, _houses: self.harnesses }
    }
}

/// Returns the epoch of each bucket in the ledger.
pub(crate) async fn epochs_per_bucket(nodes: &Nodes) -> Vec<u64> {
    if nodes.is_embedded {
        return Vec::new();
    }
    let ledger = opened(nodes.ledger()).await;
    read(async || ledger.buckets().await).await.iter().map(|row| row.epoch).collect()
}

/// The ledger of stopped nodes.
pub(crate) struct Closed {
    pub(crate) ledger: Location,
    // Dropped together with the ledger.
    _database: Option<Database>,
    _houses: Vec<Harness>,
}

/// Takes a seat that must be free for a machine without a session, and returns the session id.
pub(crate) async fn seat(client: &Client, license: &Value, machine: &str) -> Value {
    seated(client, &license["license_key"], machine).await["session_id"].clone()
}

/// Takes a seat for a machine without a session, and returns the body of the answer.
pub(crate) async fn seated(client: &Client, license_key: &Value, machine: &str) -> Value {
    carried_out(async || client.acquire(license_key, machine).await, 201, 200).await.body
}

/// Checks that no seat is free.
pub(crate) async fn denied(client: &Client, license_key: &Value, machine: &str) {
    answered(async || client.acquire(license_key, machine).await).await.expect(403);
}

/// Releases a live session.
pub(crate) async fn released(client: &Client, session: &Value) {
    carried_out(async || client.release(session).await, 204, 404).await;
}

/// Retries until the answer is no 503, and checks for the status `done`. A retry may find that an attempt that was answered
/// with 503 took effect: then the status may be `found` as well.
async fn carried_out(ask: impl AsyncFn() -> Answer, done: u16, found: u16) -> Answer {
    let attempts = AtomicU32::new(0);
    let answer = answered(async || {
        attempts.fetch_add(1, Ordering::Relaxed);
        ask().await
    });
    let answer = answer.await;
    let is_retry = attempts.into_inner() > 1;
    assert!(answer.status == done || (is_retry && answer.status == found), "{:#}", answer.body);
    answer
}

/// Checks that a session has ended, and returns the body of the answer.
pub(crate) async fn ended(client: &Client, session: &Value) -> Value {
    answered(async || client.heartbeat(session).await).await.expect(410)
}

/// Retries until the answer is no 503.
pub(crate) async fn answered(ask: impl AsyncFn() -> Answer) -> Answer {
    let started = Instant::now();
    loop {
        let answer = ask().await;
        if answer.status != 503 {
            return answer;
        }
        assert!(started.elapsed() < SERVED_WAIT_MAX, "not served: {:#}", answer.body);
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until a node is unready. Fails the test if the node answers 200 to a request sent later than
/// [`UNREADY_WITHIN`] after `fault`. On a busy machine the limit is longer by the factor [`busyness`], at most by
/// [`UNREADY_STRETCH_MAX`].
pub(crate) async fn taken_out(node: &Client, fault: Instant) {
    loop {
        let waited = fault.elapsed();
        if node.get("/readyz").await.status == 503 {
            println!("unready {waited:?} after the fault");
            return;
        }
        let limit = UNREADY_WITHIN.mul_f64(busyness().min(UNREADY_STRETCH_MAX));
        assert!(waited < limit, "the node takes traffic {waited:?} after the fault; the limit is {limit:?}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Checks that a node is unready in time after `fault`, and stays unready until `is_over`.
pub(crate) async fn is_out_until(node: &Client, fault: Instant, is_over: impl Fn() -> bool) {
    taken_out(node, fault).await;
    while !is_over() {
        node.get("/readyz").await.expect(503);
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the load average of the last minute for each processor, but at least 1. A busy machine is slower
/// by this factor.
pub(crate) fn busyness() -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load: f64 = load.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (load / f64::from(u32::try_from(processors).unwrap_or(1))).max(1.0)
}

/// Checks that a node stays unready for longer than any lease lasts.
pub(crate) async fn stays_out(node: &Client, session: &Value) {
    let started = Instant::now();
    while started.elapsed() < BEYOND_ANY_LEASE {
        node.get("/readyz").await.expect(503);
        node.heartbeat(session).await.expect(503);
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until a session is renewed. Any answer except 200 or 503 fails the test.
pub(crate) async fn renewed(client: &Client, session: &Value) {
    answered(async || client.heartbeat(session).await).await.expect(200);
}

/// Starts a Redis that acts as the new primary beside `old`, without the knowledge of `old`. The new primary
/// may have copied nothing yet, or everything: tests must accept either.
pub(crate) fn usurper(old: &Redis) -> Redis {
    let replica = RedisSetup::default().setting(&format!("replicaof 127.0.0.1 {}", old.port())).start();
    promote(&replica);
    replica
}

/// Makes a replica a primary.
pub(crate) fn promote(replica: &Redis) {
    let mut promotion = redis::cmd("REPLICAOF");
    promotion.arg("NO").arg("ONE");
    replica.ask::<()>(promotion);
}

fn address_of(node: &Harness) -> SocketAddr {
    node.url().trim_start_matches("http://").parse().expect("an address")
}

/// Sends a signal to a node's process.
pub(crate) fn signal(node: &Harness, signal: Signal) {
    let process = Pid::from_raw(node.pid().cast_signed()).expect("a process id");
    kill_process(process, signal).expect("it can be told");
}
