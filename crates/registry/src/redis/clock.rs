//! The registry's clocks: each bucket has the clock of its server, and no time before its latest. The registry as a
//! whole has the clock of the first master to answer.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use parking_lot::Mutex;
use seatkeeper_core::{BUCKETS, Bucket, RegistryTime, Span};
use seatkeeper_host_clock::HostInstant;
use seatkeeper_redis::Link;

use super::RedisRegistry;
use super::reply::warn_of_step;
use super::scripts::SCRIPTS;
use crate::Error;
use crate::clock_estimate::{ClockEstimate, Estimate};

/// Maximum age of the survey with the masters to ask for the time. Surveys come several times a second. While a master
/// is silent, the newest survey is older, and no caller must wait for the silent master.
const SURVEY_AGE_MAX: Duration = Duration::from_secs(5);

/// Time for a master of a cluster before the next master is asked as well (hedged request).
const HEDGED_AFTER: Duration = Duration::from_millis(250);

/// The estimates of the servers' clocks, and of the time of each bucket ahead of its server's clock. The clocks of a
/// cluster's masters need not agree. Nor need the times of a server's buckets: a rebuilt bucket is ahead of the clock
/// while the clock is behind the latest time on record.
#[derive(Debug)]
pub(super) struct ClockEstimates {
    estimates: Mutex<HashMap<Timed, LinkEstimate>>,
    /// Each bucket's time is ahead of the clock, by the latest reply.
    is_ahead: Box<[AtomicBool]>,
}

/// The key of an estimate: the address of the server's link, and the bucket if its time is ahead of the server's clock.
/// No other link gets the address as long as the entry has a weak reference.
type Timed = (usize, Option<Bucket>);

/// A server's link and an estimate.
type LinkEstimate = (Weak<Link>, Arc<ClockEstimate>);

impl Default for ClockEstimates {
    fn default() -> Self {
        let is_ahead = (0..BUCKETS).map(|_| AtomicBool::new(false)).collect();
        Self { estimates: Mutex::default(), is_ahead }
    }
}

impl ClockEstimates {
    /// Notes the lag of the server's clock behind the time of a bucket.
    pub(super) fn note_lag(&self, bucket: Bucket, lag: Span) {
        let (is_ahead, noted) = (lag > Span::ZERO, &self.is_ahead[usize::from(bucket.number())]);
        // Nearly every reply is without a change, and a load leaves the cache line shared between processors.
        if noted.load(Ordering::Relaxed) != is_ahead {
            noted.store(is_ahead, Ordering::Relaxed);
        }
    }

    /// Returns the estimate for a bucket of the server behind `link`.
    fn get(&self, link: &Arc<Link>, bucket: Bucket) -> Arc<ClockEstimate> {
        let is_ahead = self.is_ahead[usize::from(bucket.number())].load(Ordering::Relaxed);
        self.get_timed(link, is_ahead.then_some(bucket))
    }

    /// Returns the estimate of the time of bucket `ahead`, or of the server's clock for `None`.
    fn get_timed(&self, link: &Arc<Link>, ahead: Option<Bucket>) -> Arc<ClockEstimate> {
        let (mut estimates, key) = (self.estimates.lock(), (Arc::as_ptr(link).addr(), ahead));
        if let Some((_, estimate)) = estimates.get(&key) {
            return Arc::clone(estimate);
        }
        estimates.retain(|_, (link, _)| link.strong_count() > 0);
        let estimate = Arc::new(ClockEstimate::default());
        estimates.insert(key, (Arc::downgrade(link), Arc::clone(&estimate)));
        estimate
    }
}

impl RedisRegistry {
    /// Returns the time of the first master of a cluster, in the order of buckets. A master fallen silent since
    /// the survey, or a failing master, leaves the answer to the next.
    pub(super) async fn time_of_cluster(&self) -> Result<RegistryTime, Error> {
        let survey = match self.surveys.newest(SURVEY_AGE_MAX) {
            Some(survey) => survey,
            None => self.survey(SURVEY_AGE_MAX).await,
        };
        let mut masters = survey.one_bucket_of_each_server().into_iter();
        let ask = |bucket| self.in_time(false, self.time_of(bucket));
        // Without a reached master, the call itself says why.
        let mut asked = FuturesUnordered::from_iter([ask(masters.next().unwrap_or(Bucket::FIRST))]);
        loop {
            let is_last = masters.len() == 0;
            let failure = tokio::select! {
                answer = asked.next() => match answer {
                    Some(Ok(now)) => return Ok(now),
                    Some(Err(error)) => Some(error),
                    None => return Err(Error::TimedOut),
                },
                () = tokio::time::sleep(HEDGED_AFTER), if !is_last => None,
            };
            match (masters.next(), failure) {
                (Some(next), _) => asked.push(ask(next)),
                (None, Some(error)) if asked.is_empty() => return Err(error),
                (None, _) => {}
            }
        }
    }

    /// Returns an estimate of the time of a bucket.
    pub(super) async fn approximate_time_of(&self, bucket: Bucket) -> Result<RegistryTime, Error> {
        let estimate = self.link_of(bucket).map(|link| self.clock_estimates.get(&link, bucket));
        let known = estimate.as_ref().map(|estimate| estimate.known());
        match known {
            Some(Estimate::Time(time)) => Ok(time),
            Some(Estimate::Ask(_)) | None => self.in_time(false, self.time_of(bucket)).await,
        }
    }

    /// Returns the time of a bucket: the clock of the bucket's server, or a later time that the bucket had before.
    pub(super) async fn time_of(&self, bucket: Bucket) -> Result<RegistryTime, Error> {
        let (asked, link) = (HostInstant::now(), self.link_of(bucket));
        let head = &self.keys.bucket(bucket).head;
        let call = SCRIPTS.now.call([head].into_iter());
        let (now, behind) = self.requests.servers.run(head, &SCRIPTS.now, &call).await?;
        let (now, lag) = (RegistryTime::from_millis(now), Span::from_millis(behind));
        warn_of_step(lag);
        self.clock_estimates.note_lag(bucket, lag);
        // A bucket that has moved was perhaps answered by another server.
        if let (Some(before), Some(after)) = (link, self.link_of(bucket))
            && Arc::ptr_eq(&before, &after)
        {
            let ahead = (lag > Span::ZERO).then_some(bucket);
            self.clock_estimates.get_timed(&after, ahead).note(now, asked);
        }
        Ok(now)
    }

    /// Returns the link to the server of a bucket, if the server is known.
    fn link_of(&self, bucket: Bucket) -> Option<Arc<Link>> {
        self.requests.servers.link_now(self.slots.get(bucket))
    }
}
