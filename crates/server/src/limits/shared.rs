//! Rates counted in Redis for all nodes together. A [`Batcher`] has a single command in flight.

use std::time::Duration;

use redis::{Cmd, RedisResult};
use seatkeeper_redis::{Batcher, Script, SendBatch, Servers};
use tokio::time::Instant;

use super::key::Key;
use super::rate::{Rate, Verdict};

/// Time limit for Redis's reply.
const PATIENCE: Duration = Duration::from_secs(2);

/// Backoff after a command without a reply.
const PAUSE: Duration = Duration::from_secs(1);

/// Maximum of calls in a command. Redis runs no other command meanwhile.
const CALLS_MAX: usize = 64;

/// Maximum of queued calls: more than arrive while Redis may take to answer.
const WAITING_MAX: usize = 64 * 1024;

/// The prefix of all keys. The keys share a hash tag, hence a slot of a cluster, so a command can name any of
/// them.
const SLOT_OF: &str = "sk:rate:{rate}";

/// The rates in Redis.
pub(super) struct Shared {
    batcher: Batcher<Counter>,
}

/// Sends queued calls to Redis.
struct Counter {
    redis: Servers,
    script: Script,
    /// The end of the backoff, if Redis did not answer.
    paused_until: Option<Instant>,
}

impl Shared {
    /// Starts the batcher. Must be called in a Tokio runtime.
    pub(super) fn new(redis: Servers) -> Self {
        let script = Script::new(include_str!("shared/gcra.lua"));
        let counter = Counter { redis, script, paused_until: None };
        Self { batcher: Batcher::new(CALLS_MAX, WAITING_MAX, [counter]) }
    }

    /// Decides if a use of `key` passes, and counts a use that passes. Redis decides the uses of this node in the
    /// order of the calls of `count`. The future returns `None` if Redis does not answer.
    pub(super) fn count(&self, key: Key, rate: Rate) -> impl Future<Output = Option<Verdict>> + use<> {
        self.batcher.try_call((key, rate))
    }
}

impl SendBatch for Counter {
    type Call = (Key, Rate);
    type Reply = Verdict;

    async fn send(&mut self, calls: &[(Key, Rate)]) -> Vec<Verdict> {
        if self.paused_until.is_some_and(|until| Instant::now() < until) {
            return Vec::new();
        }
        let why = match tokio::time::timeout(PATIENCE, self.verdicts(calls)).await {
            Ok(Ok(verdicts)) => {
                self.note_answered();
                return verdicts;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("it took longer than {} s", PATIENCE.as_secs()),
        };
        self.note_silent(&why);
        Vec::new()
    }
}

impl Counter {
    async fn verdicts(&self, calls: &[(Key, Rate)]) -> RedisResult<Vec<Verdict>> {
        let told: Vec<u64> = self.redis.run(SLOT_OF, &self.script, &self.command(calls)).await?;
        let Some((&now, verdicts)) = told.split_first() else { return Ok(Vec::new()) };
        let verdict = |told: &[u64; 2]| Verdict { passes: told[0] == 1, now, busy_until: told[1] };
        Ok(verdicts.as_chunks().0.iter().map(verdict).collect())
    }

    fn command(&self, calls: &[(Key, Rate)]) -> Cmd {
        let mut command = self.script.call(calls.iter().map(|(key, _)| name_of(*key)));
        for (_, rate) in calls {
            command.arg(rate.burst).arg(rate.interval);
        }
        command
    }

    fn note_answered(&mut self) {
        if self.paused_until.take().is_some() {
            tracing::info!("Redis answers again; rate limits count all nodes together");
        }
    }

    fn note_silent(&mut self, why: &str) {
        if self.paused_until.replace(Instant::now() + PAUSE).is_none() {
            tracing::warn!(
                why,
                "Redis does not count requests; limits.when_redis_down applies until Redis answers again"
            );
        }
    }
}

/// Returns the name of `Key` in Redis.
fn name_of(Key(bytes): Key) -> String {
    format!("{SLOT_OF}:{:032x}", u128::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests;
