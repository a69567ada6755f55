//! The survey: state of every bucket on its server, and whether the server accepts writes.
//!
//! Journals, sweeps and failover share one survey of all heads. A survey takes three commands on a single
//! server; in a cluster, two per master and one per group of buckets (`keys.rs`). A server that refuses
//! writes is as useless as a server that is down, so a survey writes a key on each server.
//!
//! A new polled value goes into the bucket's head (`lib/bucket.lua`), read by each survey.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::{FromRedisValue, RedisResult, Value};
use seatkeeper_core::{Bucket, BucketSet, RegistryTime};
use seatkeeper_host_clock::HostInstant;
use seatkeeper_redis::{Connection, Link, Slot, not_reached};
use tokio::time::Instant;

use super::RedisRegistry;
use super::head::{Head, Stage};
use super::keys::mark_key;
use crate::clock_trust::ClockTrust;
use crate::{ClockSteps, Epochs, Error, Identity, Store};

/// Time limit for a server's answer to a survey. After the limit, the server's buckets count as unreachable.
const SERVER_MAX: Duration = Duration::from_secs(1);

/// Time limit for a master of a Redis Cluster that failed the survey before: a silent master must hardly delay the users
/// of the others. Failover's own surveys give every server [`SERVER_MAX`].
const FAILED_SERVER_MAX: Duration = Duration::from_millis(250);

/// Lifetime of the key written by a survey.
const MARK_KEPT: Duration = Duration::from_secs(600);

/// The state of a bucket on its server.
#[derive(Clone, Debug)]
pub(super) struct BucketSurvey {
    /// Identity of the memory that holds the bucket.
    pub(super) server: Identity,
    /// The server's clock.
    pub(super) clock: RegistryTime,
    /// The bucket's head; `None` if the server has nothing of the bucket.
    pub(super) head: Option<Head>,
    /// The time that the server took to answer.
    pub(super) latency: Duration,
}

impl BucketSurvey {
    /// Returns the head, if the bucket is served in `epoch`.
    pub(super) fn serving_in(&self, epoch: u64) -> Option<&Head> {
        let is_serving = |head: &&Head| head.stage == Stage::Serving && head.epoch == epoch;
        self.head.as_ref().filter(is_serving)
    }
}

/// A survey of all buckets in order. An error is the reason why the bucket's server is unreachable.
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

    /// Returns the first bucket of each reached server, in order.
    pub(super) fn one_bucket_of_each_server(&self) -> Vec<Bucket> {
        let mut found: Vec<(Bucket, &Identity)> = Vec::new();
        for (bucket, standing) in self.buckets() {
            if let Ok(BucketSurvey { server, .. }) = standing
                && found.iter().all(|(_, other)| *other != server)
            {
                found.push((bucket, server));
            }
        }
        found.into_iter().map(|(bucket, _)| bucket).collect()
    }

    /// Returns whether none of `buckets` was reached.
    fn has_failed(&self, buckets: &[Bucket]) -> bool {
        buckets.iter().all(|bucket| self.buckets[usize::from(bucket.number())].is_err())
    }
}

/// The heads of the buckets served by this node.
pub(super) struct ServedHeads {
    pub(super) heads: Vec<(Bucket, BucketSurvey)>,
    /// The served buckets on unreachable servers.
    pub(super) unreached: BucketSet,
    /// The reason for the last bucket in `unreached`.
    why: Option<Arc<str>>,
}

impl ServedHeads {
    /// Returns `Err(Unavailable)` if buckets are served, and all are unreachable.
    pub(super) fn check(&self) -> Result<(), Error> {
        match &self.why {
            Some(why) if self.heads.is_empty() => Err(Error::Unavailable(why.to_string().into())),
            Some(_) | None => Ok(()),
        }
    }
}

/// The latest survey, and the clocks of the surveyed servers.
#[derive(Debug, Default)]
pub(super) struct Surveys {
    // Locked during a survey, so that concurrent callers share the result (single flight).
    latest: tokio::sync::Mutex<Option<Arc<Survey>>>,
    /// The last survey to begin of those that ended, for callers who must not wait for a survey in flight.
    newest: parking_lot::Mutex<Option<Arc<Survey>>>,
    clocks: parking_lot::Mutex<HashMap<usize, ClockTrust>>,
    pub(super) clock_steps: Arc<ClockSteps>,
}

impl Surveys {
    /// Returns the last survey to begin of those that ended, if begun at most `age_max` ago.
    pub(super) fn newest(&self, age_max: Duration) -> Option<Arc<Survey>> {
        self.newest.lock().clone().filter(|survey| survey.began.elapsed() < age_max)
    }
}

impl RedisRegistry {
    /// Returns a survey that began at most `age_max` before the call. Waits for a survey in flight, and makes a new
    /// survey if the latest is older.
    pub(super) async fn survey(&self, age_max: Duration) -> Arc<Survey> {
        let asked = Instant::now();
        let mut latest = self.surveys.latest.lock().await;
        // The survey of a silent server is old at its end. Callers who waited for the survey need no other.
        if let Some(survey) = latest.as_ref().filter(|survey| survey.began + age_max > asked) {
            return Arc::clone(survey);
        }
        let survey = self.make_survey(latest.as_deref()).await;
        *latest = Some(Arc::clone(&survey));
        survey
    }

    /// Makes a survey of its own, in parallel with a survey in flight: failover must not wait for a silent server twice.
    pub(super) async fn own_survey(&self) -> Arc<Survey> {
        let survey = self.make_survey(None).await;
        if let Ok(mut latest) = self.surveys.latest.try_lock() {
            *latest = Some(Arc::clone(&survey));
        }
        survey
    }

    /// Returns the heads of the buckets served by this node, from a survey that began at most `age_max` ago.
    pub(super) async fn served_heads(&self, age_max: Duration) -> ServedHeads {
        let survey = self.survey(age_max).await;
        let mut served = ServedHeads { heads: Vec::new(), unreached: BucketSet::default(), why: None };
        for (bucket, standing) in survey.buckets() {
            let epoch = self.epochs.get(bucket);
            if epoch == Epochs::NONE {
                continue;
            }
            match standing {
                Ok(standing) if standing.serving_in(epoch).is_some() => {
                    served.heads.push((bucket, standing.clone()));
                }
                Ok(_) => {}
                Err(why) => {
                    served.unreached.insert(bucket);
                    served.why = Some(Arc::clone(why));
                }
            }
        }
        served
    }

    /// Limits a call on a bucket to the time that a survey gives a server, if other buckets have other servers: a master of
    /// a Redis Cluster that falls silent must not hold up the work for the others. `has_failed` tells whether the bucket's
    /// master failed the latest survey.
    pub(super) async fn in_time<T>(
        &self,
        has_failed: bool,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        if self.requests.servers.is_one() {
            return call.await;
        }
        tokio::time::timeout(time_limit(has_failed), call).await.unwrap_or(Err(Error::TimedOut))
    }

    /// Groups buckets for multi-key commands: all buckets in one group on a single server, a group per slot
    /// in a cluster.
    pub(super) fn by_command(&self, buckets: impl Iterator<Item = Bucket>) -> Vec<Vec<Bucket>> {
        let is_one = self.requests.servers.is_one();
        let mut groups = BTreeMap::<Option<Slot>, Vec<Bucket>>::new();
        for bucket in buckets {
            groups.entry((!is_one).then(|| self.slots.get(bucket))).or_default().push(bucket);
        }
        groups.into_values().collect()
    }

    /// Surveys all servers. A master that failed the survey `before` gets less time.
    async fn make_survey(&self, before: Option<&Survey>) -> Arc<Survey> {
        let (began, is_one) = (Instant::now(), self.requests.servers.is_one());
        let mut servers: HashMap<usize, (Arc<Link>, Vec<Bucket>)> = HashMap::new();
        let mut buckets: Vec<_> =
            Bucket::all().map(|_| Err(Arc::from("nobody says which server has the slot"))).collect();
        for bucket in Bucket::all() {
            if let Some(link) = self.requests.servers.link_now(self.slots.get(bucket)) {
                let server = servers.entry(Arc::as_ptr(&link).addr());
                server.or_insert_with(|| (link, Vec::new())).1.push(bucket);
            }
        }
        self.surveys.clocks.lock().retain(|server, _| servers.contains_key(server));
        let surveyed = servers.into_iter().map(|(server, (link, of_server))| async move {
            let has_failed = !is_one && before.is_some_and(|before| before.has_failed(&of_server));
            let survey = self.survey_server(server, &link, &of_server);
            let surveyed = tokio::time::timeout(time_limit(has_failed), survey).await;
            (of_server, surveyed.unwrap_or_else(|_| Err("it does not answer in time".into())))
        });
        for (of_server, surveyed) in join_all(surveyed).await {
            match surveyed {
                Ok(standings) => standings.into_iter().for_each(|(bucket, standing)| {
                    buckets[usize::from(bucket.number())] = standing;
                }),
                Err(why) => of_server.into_iter().for_each(|bucket| {
                    buckets[usize::from(bucket.number())] = Err(Arc::clone(&why));
                }),
            }
        }
        let survey = Arc::new(Survey { began, buckets });
        let mut newest = self.surveys.newest.lock();
        if newest.as_ref().is_none_or(|newest| newest.began <= began) {
            *newest = Some(Arc::clone(&survey));
        }
        drop(newest);
        survey
    }

    /// Surveys the buckets of one server. An error is the reason why the whole server is useless.
    async fn survey_server(
        &self,
        server: usize,
        link: &Link,
        buckets: &[Bucket],
    ) -> Result<Vec<(Bucket, Result<BucketSurvey, Arc<str>>)>, Arc<str>> {
        let up = link.up().await.map_err(why)?;
        let Some(first) = buckets.first() else { return Ok(Vec::new()) };
        let write =
            redis::cmd("SET").arg(mark_key(*first)).arg("").arg("PX").arg(MARK_KEPT.as_millis()).take();
        let time = redis::cmd("TIME");
        let heads = self.read_heads(link, &up, buckets);
        let asked = HostInstant::now();
        let (written, time, heads) =
            tokio::join!(link.send(&up, None, &write), link.send(&up, None, &time), heads);
        let latency = asked.elapsed();
        link.note_write(&written);
        written.map_err(why)?;
        let clock = clock_of(time.map_err(why)?).ok_or("TIME has no time")?;
        let standing = |head: RedisResult<Value>| {
            let bytes: Option<Vec<u8>> = FromRedisValue::from_redis_value(head.map_err(why)?).map_err(why)?;
            let head = bytes.as_deref().map(Head::read).transpose().map_err(why)?;
            Ok(BucketSurvey { server: Identity(up.identity().into()), clock, head, latency })
        };
        let surveys: Vec<_> = heads.into_iter().map(|(bucket, head)| (bucket, standing(head))).collect();
        if self.settings.lease.is_some() {
            let heads = surveys.iter().filter_map(|(_, survey)| survey.as_ref().ok()?.head.as_ref());
            self.check_clock(server, (clock, asked), heads.map(Head::latest_time).max())?;
        }
        Ok(surveys)
    }

    /// Judges the clock of a server. The first reading is compared with `latest`, the latest time in the server's memory:
    /// a promoted replica may have another clock than the primary had.
    fn check_clock(
        &self,
        server: usize,
        (clock, asked): (RegistryTime, HostInstant),
        latest: Option<RegistryTime>,
    ) -> Result<(), Arc<str>> {
        let new = || ClockTrust::new(Store::Redis, Arc::clone(&self.surveys.clock_steps));
        let mut clocks = self.surveys.clocks.lock();
        let trust = clocks.entry(server).or_insert_with(new);
        match latest {
            Some(latest) => trust.check_unleased(clock, asked, latest),
            None => trust.check(clock, asked),
        }
    }

    /// Reads the heads of a server's buckets, one `MGET` per group.
    async fn read_heads(
        &self,
        link: &Link,
        up: &Arc<Connection>,
        buckets: &[Bucket],
    ) -> Vec<(Bucket, RedisResult<Value>)> {
        let groups = self.by_command(buckets.iter().copied());
        let reads = groups.into_iter().map(|group| async move {
            let heads: Vec<_> = group.iter().map(|bucket| &self.keys.bucket(*bucket).head).collect();
            let read = match link.send(up, None, redis::cmd("MGET").arg(heads)).await {
                Ok(Value::Array(heads)) if heads.len() == group.len() => heads.into_iter().map(Ok).collect(),
                Ok(_) => vec![Err(not_reached("MGET has another number of values")); group.len()],
                Err(error) => vec![Err(error); group.len()],
            };
            group.into_iter().zip(read).collect::<Vec<_>>()
        });
        join_all(reads).await.into_iter().flatten().collect()
    }
}

/// Returns the time that a server has to answer. `has_failed` tells whether a master of a cluster failed the survey before.
fn time_limit(has_failed: bool) -> Duration {
    if has_failed { FAILED_SERVER_MAX } else { SERVER_MAX }
}

/// Returns the reason in an error.
fn why(error: impl std::fmt::Display) -> Arc<str> {
    error.to_string().into()
}

/// Decodes the reply to `TIME`: seconds and microseconds.
fn clock_of(time: Value) -> Option<RegistryTime> {
    let (seconds, micros): (u64, u64) = FromRedisValue::from_redis_value(time).ok()?;
    Some(RegistryTime::from_millis(seconds * 1_000 + micros / 1_000))
}
