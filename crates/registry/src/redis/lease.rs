//! Renewal of the buckets' leases: one script call for each group of buckets in a cluster, and one call on a
//! single server. A bucket without a current lease ends no session.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use redis::FromRedisValue as _;
use seatkeeper_core::Bucket;
use seatkeeper_redis::{Answer, Connection, Retry};

use super::RedisRegistry;
use super::codec::Garbled;
use super::head::{Stage, stamp};
use super::scripts::SCRIPTS;
use super::survey::BucketSurvey;
use crate::Error;

/// The longest age of a survey that tells which leases to renew. A lease is renewed while half of it is left, which
/// is much longer.
const SURVEY_AGE_MAX: Duration = Duration::from_secs(2);

impl RedisRegistry {
    /// Renews the leases of this node's served buckets once half of the lease is over.
    ///
    /// The first of several nodes to renew saves the rest the work. A call renews the leases of a whole
    /// group, so that later the leases of a group fall due together.
    pub(super) async fn renew_served_leases(&self) -> Result<(), Error> {
        let Some(lease) = self.settings.lease else { return Ok(()) };
        // A silent server costs every survey a second, so the survey of the same probe serves.
        let survey = self.survey(SURVEY_AGE_MAX).await;
        let served: Vec<_> = survey.buckets().filter_map(|bucket| self.served_bucket(bucket)).collect();
        let is_due = |bucket: &Bucket| {
            let found = served.binary_search_by_key(bucket, |(bucket, _)| *bucket);
            found.is_ok_and(|place| self.is_half_over(&served[place], lease))
        };
        let groups = self.by_command(served.iter().map(|(bucket, _)| *bucket));
        let due = groups.iter().filter(|group| group.iter().any(is_due));
        let renewals = due.map(|group| self.in_time(false, self.renew_leases_of(group, lease)));
        join_all(renewals).await.into_iter().collect()
    }

    /// Returns a bucket that this node serves, unless its server is out of reach.
    fn served_bucket(
        &self,
        (bucket, standing): (Bucket, &Result<BucketSurvey, Arc<str>>),
    ) -> Option<(Bucket, BucketSurvey)> {
        let standing = standing.as_ref().ok()?;
        standing.serving_in(self.epochs.get(bucket))?;
        Some((bucket, standing.clone()))
    }

    fn is_half_over(&self, (bucket, standing): &(Bucket, BucketSurvey), lease: Duration) -> bool {
        let head = standing.serving_in(self.epochs.get(*bucket));
        let half = (lease / 2).as_millis() as u64;
        head.is_some_and(|head| head.leased_until.since(standing.clock).as_millis() < half)
    }

    /// Renews the leases of a group of buckets in one call. The script leaves out a bucket of another epoch
    /// or server, and a bucket whose lease is over.
    async fn renew_leases_of(&self, buckets: &[Bucket], lease: Duration) -> Result<(), Error> {
        let Some(first) = buckets.first() else { return Ok(()) };
        let script = &SCRIPTS.renew_leases;
        let call = |server: &Connection| {
            let mut call = script.call(buckets.iter().map(|bucket| &self.keys.bucket(*bucket).head));
            call.arg(lease.as_millis());
            for bucket in buckets {
                call.arg(stamp(Stage::Serving, self.epochs.get(*bucket), server.identity()));
            }
            Cow::Owned(call)
        };
        let answer =
            self.requests.servers.call(self.slots.get(*first), Some(script), Retry::WhenCutOff, call).await;
        let Answer { value, connection, .. } = answer?;
        let renewed = usize::from_redis_value(value).map_err(|_| Garbled("how many leases were renewed"))?;
        if renewed < buckets.len() {
            connection.doubt_identity();
        }
        Ok(())
    }
}
