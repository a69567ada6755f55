//! The registry's clock: the clock of one server, in a cluster of the first master to answer.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use seatkeeper_core::{Bucket, RegistryTime, Span};
use seatkeeper_host_clock::HostInstant;

use super::RedisRegistry;
use super::reply::warn_of_step;
use super::scripts::SCRIPTS;
use crate::Error;

/// Maximum age of the survey with the masters to ask for the time. Surveys come several times a second. While a master
/// is silent, the newest survey is older, and no caller must wait for the silent master.
const SURVEY_AGE_MAX: Duration = Duration::from_secs(5);

/// Time for a master of a cluster before the next master is asked as well (hedged request).
const HEDGED_AFTER: Duration = Duration::from_millis(250);

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

    /// Returns the time of the server of a bucket.
    pub(super) async fn time_of(&self, bucket: Bucket) -> Result<RegistryTime, Error> {
        let asked = HostInstant::now();
        let head = &self.keys.bucket(bucket).head;
        let call = SCRIPTS.now.call([head].into_iter());
        let (now, behind) = self.requests.servers.run(head, &SCRIPTS.now, &call).await?;
        warn_of_step(Span::from_millis(behind));
        let now = RegistryTime::from_millis(now);
        self.clock_estimate.note(now, asked);
        Ok(now)
    }
}
