//! Renewal of the buckets' leases: one call for all buckets that one command can name.

use std::borrow::Cow;
use std::time::Duration;

use futures_util::future::join_all;
use redis::FromRedisValue as _;
use seatkeeper_core::Bucket;

use super::RedisRegistry;
use super::call::{Stage, stamp};
use super::codec::Garbled;
use super::link::{Up, failed};
use super::scripts::SCRIPTS;
use super::servers::Again;
use super::survey::BucketSurvey;
use crate::Error;

impl RedisRegistry {
    /// Renews the leases of the buckets that this node serves, where half of the lease is over.
    ///
    /// Several nodes do so: whoever comes first saves the others the work. A lease is renewed with those of all other
    /// buckets that the same command can name, so that in time all of them are due together.
    pub(super) async fn renew_served_leases(&self) -> Result<(), Error> {
        let Some(lease) = self.settings.lease else { return Ok(()) };
        let served = self.served_heads(self.settings.journal_poll).await?;
        let is_due = |bucket: &Bucket| {
            let found = served.binary_search_by_key(bucket, |(bucket, _)| *bucket);
            found.is_ok_and(|place| self.is_half_over(&served[place], lease))
        };
        let groups = self.by_command(served.iter().map(|(bucket, _)| *bucket));
        let due = groups.iter().filter(|group| group.iter().any(is_due));
        join_all(due.map(|group| self.renew_leases_of(group, lease))).await.into_iter().collect()
    }

    fn is_half_over(&self, (bucket, standing): &(Bucket, BucketSurvey), lease: Duration) -> bool {
        let head = standing.serving_in(self.epochs.of(*bucket));
        let half = (lease / 2).as_millis() as u64;
        head.is_some_and(|head| head.leased_until.since(standing.clock).as_millis() < half)
    }

    /// Renews the leases of buckets that one command can name. A bucket that is not served as this node knows it, or whose
    /// lease is over, is left as it is.
    async fn renew_leases_of(&self, buckets: &[Bucket], lease: Duration) -> Result<(), Error> {
        let Some(first) = buckets.first() else { return Ok(()) };
        let script = &SCRIPTS.renew_leases;
        let call = |up: &Up| {
            let mut call = script.call(buckets.iter().map(|bucket| &self.keys.of(*bucket).head));
            call.arg(lease.as_millis());
            for bucket in buckets {
                call.arg(stamp(Stage::Serving, self.epochs.of(*bucket), &up.identity));
            }
            Cow::Owned(call)
        };
        let asked = self.way.servers.ask(self.slots.of(*first), Some(script), Again::WhenCutOff, call).await;
        let (up, renewed) = asked.map_err(failed)?;
        let renewed =
            usize::from_redis_value(renewed).map_err(|_| Garbled("how many leases were renewed"))?;
        if renewed < buckets.len() {
            up.doubt_identity();
        }
        Ok(())
    }
}
