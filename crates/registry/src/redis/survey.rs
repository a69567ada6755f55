//! The survey: how every bucket stands on its server, and whether the server takes writes.
//!
//! Journals, sweeps and failover all start from the heads of the buckets, so one survey serves all of them: on a single
//! server it is four commands (`INFO` is read by the link), however many buckets there are. A server that refuses
//! writes is of no more use than one that is down, so a survey writes a key on each of them.
//!
//! To add something that nodes poll for, put it into the head (`lib/bucket.lua`) and read it here.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::{Cmd, FromRedisValue, RedisResult, Value};
use seatkeeper_core::{Bucket, RegistryTime};
use tokio::time::Instant;

use super::RedisRegistry;
use super::call::{Call, Head, Stage, head_of};
use super::keys::mark_key;
use super::link::{Link, not_reached};
use super::scripts::SCRIPTS;
use crate::clock_trust::ClockTrust;
use crate::{ClockSteps, Epochs, Error, Identity, Store};

/// Time limit for a server's answer to a survey. Past it, the buckets of the server count as out of reach.
const SERVER_MAX: Duration = Duration::from_secs(1);

/// Lifetime of the key that a survey writes.
const MARK_KEPT: Duration = Duration::from_secs(600);

/// A bucket as its server holds it.
#[derive(Clone, Debug)]
pub(super) struct BucketSurvey {
    /// The memory that the bucket is in.
    pub(super) server: Identity,
    /// The server's clock.
    pub(super) clock: RegistryTime,
    /// The bucket's head; `None` if the server has nothing of the bucket.
    pub(super) head: Option<Head>,
}

impl BucketSurvey {
    /// The head, if the bucket is served in this epoch.
    pub(super) fn serving_in(&self, epoch: u64) -> Option<&Head> {
        let is_serving = |head: &&Head| head.stage == Stage::Serving && head.epoch == epoch;
        self.head.as_ref().filter(is_serving)
    }
}

/// A survey of all buckets in their order. An error says why the bucket's server is out of reach.
#[derive(Debug)]
pub(super) struct Survey {
    began: Instant,
    buckets: Vec<Result<BucketSurvey, Arc<str>>>,
}

impl Survey {
    /// Iterates over the buckets and their outcomes.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (Bucket, &Result<BucketSurvey, Arc<str>>)> {
        Bucket::all().zip(&self.buckets)
    }
}

/// The latest survey, and the clocks of the servers that were surveyed.
#[derive(Debug, Default)]
pub(super) struct Surveys {
    // Held while a survey is made, so that callers who come meanwhile share it.
    latest: tokio::sync::Mutex<Option<Arc<Survey>>>,
    clocks: parking_lot::Mutex<HashMap<usize, ClockTrust>>,
    pub(super) clock_steps: Arc<ClockSteps>,
}

impl RedisRegistry {
    /// Returns a survey that began at most `age_max` ago, made anew if need be.
    pub(super) async fn survey(&self, age_max: Duration) -> Arc<Survey> {
        let mut latest = self.surveys.latest.lock().await;
        if let Some(survey) = latest.as_ref().filter(|survey| survey.began.elapsed() < age_max) {
            return Arc::clone(survey);
        }
        let survey = Arc::new(self.make_survey().await);
        *latest = Some(Arc::clone(&survey));
        survey
    }

    /// Returns the served buckets and their heads, from a survey that began at most `age_max` ago.
    ///
    /// `Err(Unavailable)` if a bucket that this node serves is out of reach.
    pub(super) async fn served_heads(&self, age_max: Duration) -> Result<Vec<(Bucket, BucketSurvey)>, Error> {
        let survey = self.survey(age_max).await;
        let mut served = Vec::new();
        for (bucket, standing) in survey.buckets() {
            let epoch = self.epochs.of(bucket);
            if epoch == Epochs::NONE {
                continue;
            }
            match standing {
                Ok(standing) if standing.serving_in(epoch).is_some() => {
                    served.push((bucket, standing.clone()))
                }
                Ok(_) => {}
                Err(why) => return Err(Error::Unavailable(why.to_string().into())),
            }
        }
        Ok(served)
    }

    /// Renews the leases of the buckets that this node serves, where half of the lease is over.
    ///
    /// Several nodes do so: whoever comes first saves the others the work.
    pub(super) async fn renew_served_leases(&self) -> Result<(), Error> {
        let Some(lease) = self.settings.lease else { return Ok(()) };
        let half = lease / 2;
        let served = self.served_heads(self.settings.journal_poll).await?;
        let is_due = |(bucket, standing): &(Bucket, BucketSurvey)| {
            let head = standing.serving_in(self.epochs.of(*bucket));
            head.is_some_and(|head| {
                head.leased_until.since(standing.clock).as_millis() < half.as_millis() as u64
            })
        };
        let calls = served.iter().filter(|served| is_due(served)).map(|(bucket, _)| {
            Call::on_bucket(&SCRIPTS.renew_lease, *bucket, self.keys.of(*bucket)).arg(lease.as_millis())
        });
        for renewed in join_all(calls.map(|call| self.told(call))).await {
            match renewed {
                Ok(_) | Err(Error::NotServing { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn make_survey(&self) -> Survey {
        let began = Instant::now();
        let mut servers: HashMap<usize, (Arc<Link>, Vec<Bucket>)> = HashMap::new();
        let mut buckets: Vec<_> =
            Bucket::all().map(|_| Err(Arc::from("nobody says which server has the slot"))).collect();
        for bucket in Bucket::all() {
            if let Some(link) = self.way.servers.link_now(self.slots.of(bucket)) {
                let server = servers.entry(Arc::as_ptr(&link).addr());
                server.or_insert_with(|| (link, Vec::new())).1.push(bucket);
            }
        }
        self.surveys.clocks.lock().retain(|server, _| servers.contains_key(server));
        let surveyed = servers.into_iter().map(|(server, (link, of_server))| async move {
            let surveyed =
                tokio::time::timeout(SERVER_MAX, self.survey_server(server, &link, &of_server)).await;
            (of_server, surveyed.unwrap_or_else(|_| Err("it does not answer in time".into())))
        });
        for (of_server, surveyed) in join_all(surveyed).await {
            match surveyed {
                Ok(standings) => of_server.into_iter().zip(standings).for_each(|(bucket, standing)| {
                    buckets[usize::from(bucket.number())] = standing;
                }),
                Err(why) => of_server.into_iter().for_each(|bucket| {
                    buckets[usize::from(bucket.number())] = Err(Arc::clone(&why));
                }),
            }
        }
        Survey { began, buckets }
    }

    /// Surveys the buckets of one server. An error is why the whole server is of no use.
    async fn survey_server(
        &self,
        server: usize,
        link: &Link,
        buckets: &[Bucket],
    ) -> Result<Vec<Result<BucketSurvey, Arc<str>>>, Arc<str>> {
        let up = link.up().await.map_err(why)?;
        let Some(first) = buckets.first() else { return Ok(Vec::new()) };
        let write =
            redis::cmd("SET").arg(mark_key(*first)).arg("").arg("PX").arg(MARK_KEPT.as_millis()).take();
        let time = redis::cmd("TIME");
        let heads = self.read_heads(link, &up, buckets);
        let asked = Instant::now();
        let (written, time, heads) =
            tokio::join!(link.run(&up, None, &write), link.run(&up, None, &time), heads);
        link.note_write(&written);
        written.map_err(why)?;
        let clock = clock_of(time.map_err(why)?).ok_or("TIME has no time")?;
        if self.settings.lease.is_some() {
            let new = || ClockTrust::new(Store::Redis, Arc::clone(&self.surveys.clock_steps));
            self.surveys.clocks.lock().entry(server).or_insert_with(new).check(clock, asked.into_std())?;
        }
        let standing = |head: RedisResult<Value>| {
            let bytes: Option<Vec<u8>> = FromRedisValue::from_redis_value(head.map_err(why)?).map_err(why)?;
            let head = head_of(bytes.as_deref()).map_err(why)?;
            Ok(BucketSurvey { server: up.identity.clone(), clock, head })
        };
        Ok(heads.into_iter().map(standing).collect())
    }

    async fn read_heads(
        &self,
        link: &Link,
        up: &Arc<super::link::Up>,
        buckets: &[Bucket],
    ) -> Vec<RedisResult<Value>> {
        let head = |bucket: &Bucket| &self.keys.of(*bucket).head;
        if !self.way.servers.is_one() {
            // Keys of several slots cannot be in one command.
            let reads = buckets
                .iter()
                .map(|bucket| async move { link.run(up, None, redis::cmd("GET").arg(head(bucket))).await });
            return join_all(reads).await;
        }
        let all: Cmd = redis::cmd("MGET").arg(buckets.iter().map(head).collect::<Vec<_>>()).take();
        match link.run(up, None, &all).await {
            Ok(Value::Array(heads)) if heads.len() == buckets.len() => heads.into_iter().map(Ok).collect(),
            Ok(_) => buckets.iter().map(|_| Err(not_reached("MGET has another number of values"))).collect(),
            Err(error) => buckets.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

/// The reason in an error.
fn why(error: impl std::fmt::Display) -> Arc<str> {
    error.to_string().into()
}

/// The time that `TIME` answers: seconds and microseconds.
fn clock_of(time: Value) -> Option<RegistryTime> {
    let (seconds, micros): (u64, u64) = FromRedisValue::from_redis_value(time).ok()?;
    Some(RegistryTime::from_millis(seconds * 1_000 + micros / 1_000))
}
