//! Rates that all nodes count as one, in Redis.
//!
//! A script costs Redis more to call than to run. So one call is under way at a time, and what comes meanwhile goes
//! with the next: the busier a node is, the less each request costs.

use std::time::Duration;

use redis::{Cmd, RedisResult};
use seatkeeper_redis::{Script, Servers};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::key::Key;
use super::rate::{Rate, Verdict};

/// How long Redis has to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// For how long it is not asked again when it has not answered.
const PAUSE: Duration = Duration::from_secs(1);

/// What goes with one call at most: Redis does nothing else meanwhile.
const CALL_MAX: usize = 64;

/// What waits for a call at most: more than comes while Redis has to answer.
const WAITING_MAX: usize = 64 * 1024;

/// All keys are in one slot of a cluster, so that one call can have any of them.
const SLOT_OF: &str = "sk:rate:{rate}";

/// Rates in Redis.
pub(super) struct Shared {
    asked: mpsc::Sender<Ask>,
}

/// Something that happens, unless it is one too many.
struct Ask {
    key: Key,
    rate: Rate,
    told: oneshot::Sender<Verdict>,
}

/// Asks Redis for all.
struct Caller {
    redis: Servers,
    script: Script,
    /// When Redis is asked again, if it does not answer.
    paused_until: Option<Instant>,
}

impl Shared {
    /// Must be called in a runtime.
    pub(super) fn new(redis: Servers) -> Self {
        let (asked, asks) = mpsc::channel(WAITING_MAX);
        let script = Script::new(include_str!("shared/gcra.lua"));
        tokio::spawn(Caller { redis, script, paused_until: None }.run(asks));
        Self { asked }
    }

    /// Decides whether something may happen now, and counts it if so. None if Redis does not say.
    pub(super) async fn count(&self, key: Key, rate: Rate) -> Option<Verdict> {
        let (told, verdict) = oneshot::channel();
        self.asked.try_send(Ask { key, rate, told }).ok()?;
        verdict.await.ok()
    }
}

impl Caller {
    /// Answers what is asked until nobody can ask any more. What has no answer is dropped.
    async fn run(mut self, mut asks: mpsc::Receiver<Ask>) {
        let mut batch = Vec::with_capacity(CALL_MAX);
        while asks.recv_many(&mut batch, CALL_MAX).await > 0 {
            if self.paused_until.is_some_and(|until| Instant::now() < until) {
                batch.clear();
                continue;
            }
            let why = match tokio::time::timeout(PATIENCE, self.ask(&batch)).await {
                Ok(Ok(verdicts)) => {
                    self.note_answered();
                    for (ask, verdict) in batch.drain(..).zip(verdicts) {
                        // Whoever asked may have gone.
                        let _ = ask.told.send(verdict);
                    }
                    continue;
                }
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("it took longer than {} s", PATIENCE.as_secs()),
            };
            self.note_silent(&why);
            batch.clear();
        }
    }

    async fn ask(&self, batch: &[Ask]) -> RedisResult<Vec<Verdict>> {
        let told: Vec<u64> = self.redis.run(SLOT_OF, &self.script, &self.call(batch)).await?;
        let Some((&now, verdicts)) = told.split_first() else { return Ok(Vec::new()) };
        let verdict = |told: &[u64; 2]| Verdict { passes: told[0] == 1, now, busy_until: told[1] };
        Ok(verdicts.as_chunks().0.iter().map(verdict).collect())
    }

    fn call(&self, batch: &[Ask]) -> Cmd {
        let mut call = self.script.call(batch.iter().map(|ask| name_of(ask.key)));
        for Ask { rate, .. } in batch {
            call.arg(rate.burst).arg(rate.interval);
        }
        call
    }

    fn note_answered(&mut self) {
        if self.paused_until.take().is_some() {
            tracing::info!("Redis counts requests again, for all nodes as one");
        }
    }

    fn note_silent(&mut self, why: &str) {
        if self.paused_until.replace(Instant::now() + PAUSE).is_none() {
            tracing::warn!(why, "Redis does not count requests; limits.when_redis_down applies");
        }
    }
}

/// What a key is called in Redis.
fn name_of(Key(bytes): Key) -> String {
    format!("{SLOT_OF}:{:032x}", u128::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests;
