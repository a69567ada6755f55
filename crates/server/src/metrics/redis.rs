//! Figures from the servers of Redis: liveness, load, memory and slow commands.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::counter::ConstCounter;
use seatkeeper_redis::{NoFigures, ServerFigures, Servers};

use super::gauges::gauge;
use super::{CachedProbe, Source};
use crate::error::Error;

/// Time limit of a server's answer.
const ANSWER_MAX: Duration = Duration::from_secs(1);

/// Maximum of server runs with a remembered slow-log count: more than are ever started.
const RUNS_MAX: usize = 1_000;

/// The Redis that nodes share, as a source of figures.
pub(crate) struct Redis {
    servers: Servers,
    slow: Mutex<Slow>,
}

/// Slow commands since this node's first probe.
#[derive(Default)]
struct Slow {
    total: u64,
    /// The slow-log count of each server run at the last probe; `None` before the first probe.
    by_run: Option<HashMap<String, u64>>,
}

/// The figures from Redis.
pub(crate) struct RedisSnapshot {
    /// The time until the slowest server answered.
    pub(crate) latency: Duration,
    /// The figures of each server, or of each master in a cluster.
    pub(crate) servers: Vec<Result<ServerFigures, NoFigures>>,
    slow_commands: Option<u64>,
}

impl Redis {
    pub(crate) fn new(servers: Servers) -> Self {
        Self { servers, slow: Mutex::default() }
    }
}

#[async_trait]
impl Source for Redis {
    type Snapshot = RedisSnapshot;

    /// A probe takes long only while a server does not answer. In an outage operators want fresh news, so the
    /// rest is short.
    const RESTS: u32 = 1;

    async fn probe(&self) -> Result<RedisSnapshot, Error> {
        let began = Instant::now();
        let servers = self.servers.figures(ANSWER_MAX).await;
        let latency = began.elapsed();
        let slow_commands = self.slow.lock().with(servers.iter().flatten());
        Ok(RedisSnapshot { latency, servers, slow_commands })
    }
}

impl Slow {
    /// Adds the slow commands since the last probe and returns the total. Commands before the first probe do
    /// not count. Returns `None` if no server tells the count.
    fn with<'s>(&mut self, told: impl Iterator<Item = &'s ServerFigures>) -> Option<u64> {
        let told: Vec<_> = told.filter_map(|server| Some((&server.run, server.slow_commands?))).collect();
        if told.is_empty() {
            return None;
        }
        let is_first = self.by_run.is_none();
        let by_run = self.by_run.get_or_insert_default();
        if by_run.len() > RUNS_MAX {
            by_run.clear();
        }
        for (run, now) in told {
            let before = by_run.insert(run.clone(), now).unwrap_or(if is_first { now } else { 0 });
            self.total += now.saturating_sub(before);
        }
        Some(self.total)
    }
}

impl RedisSnapshot {
    /// Returns whether every server answers.
    pub(crate) fn is_up(&self) -> bool {
        !self.servers.is_empty() && self.servers.iter().all(Result::is_ok)
    }

    /// Returns the sum over all servers; `None` unless every server answers.
    fn sum(&self, figure: impl Fn(&ServerFigures) -> u64) -> Option<u64> {
        let known = || self.servers.iter().flatten();
        self.is_up().then(|| known().map(figure).sum())
    }

    /// Returns the used share of memory of the fullest server; `None` if no server has a limit.
    fn fullness(&self) -> Option<f64> {
        let of = |server: &ServerFigures| Some(server.memory_used as f64 / server.memory_max? as f64);
        self.servers.iter().flatten().filter_map(of).reduce(f64::max)
    }

    /// Returns the memory limit of all servers together; `None` if a server has no limit.
    fn memory_max(&self) -> Option<u64> {
        let limits: Option<Vec<u64>> =
            self.servers.iter().map(|server| server.as_ref().ok()?.memory_max).collect();
        limits.filter(|limits| !limits.is_empty()).map(|limits| limits.iter().sum())
    }
}

impl Collector for CachedProbe<Redis> {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let (told, encoder) = (self.known(), &mut encoder);
        let told = told.as_deref();
        let sum = |figure: fn(&ServerFigures) -> u64| told.and_then(|told| told.sum(figure));
        let is_up = told.is_some_and(RedisSnapshot::is_up);
        gauge(
            encoder,
            "redis_up",
            "Whether every server of Redis answers this node: 1 or 0.",
            Some(u64::from(is_up)),
        )?;
        gauge(
            encoder,
            "redis_ops_per_sec",
            "Commands that Redis carries out a second.",
            sum(|server| server.ops_per_sec),
        )?;
        gauge(
            encoder,
            "redis_memory_used_bytes",
            "Memory that Redis uses.",
            sum(|server| server.memory_used),
        )?;
        gauge(
            encoder,
            "redis_memory_max_bytes",
            "Memory that Redis may use; absent if it has no limit.",
            told.and_then(RedisSnapshot::memory_max),
        )?;
        gauge(
            encoder,
            "redis_memory_used_ratio",
            "How full the fullest server of Redis is: 0 to 1; absent if none has a limit.",
            told.and_then(RedisSnapshot::fullness),
        )?;
        gauge(encoder, "redis_connected_clients", "Connections to Redis.", sum(|server| server.clients))?;
        gauge(
            encoder,
            "redis_evicted_keys",
            "Keys that Redis has thrown away for lack of memory since it was started; any but 0 is a lost session.",
            sum(|server| server.evicted_keys),
        )?;
        let Some(slow) = told.and_then(|told| told.slow_commands) else { return Ok(()) };
        let slow = ConstCounter::new(slow);
        let help = "Commands that Redis found slow since this node looks.";
        slow.encode(encoder.encode_descriptor("redis_slowlog_entries", help, None, slow.metric_type())?)
    }
}
