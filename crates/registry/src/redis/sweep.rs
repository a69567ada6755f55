//! The sweep of due pools, by the registry's clock.

use async_trait::async_trait;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use seatkeeper_core::{Bucket, RegistryTime};

use super::RedisRegistry;
use super::codec::Garbled;
use super::expire::ExpiryScan;
use super::keys::{Key, PoolKeys};
use super::scripts::SCRIPTS;
use super::survey::BucketSurvey;
use crate::Error;
use crate::contract::{Expiry, Swept};

/// Maximum number of due pools read at a time, whatever the caller's bound.
const DUE_READ_MAX: usize = 1_000;

/// Number of buckets queried concurrently.
const BUCKETS_AT_ONCE: usize = 16;

/// Pools expired or swept per command. Redis serves no other caller for a millisecond or two.
const SWEPT_TOGETHER: usize = 32;

#[async_trait]
impl Expiry for RedisRegistry {
    /// Returns the registry's time, even if no bucket is served.
    async fn now(&self) -> Result<RegistryTime, Error> {
        if self.requests.servers.is_one() {
            return self.time_of(Bucket::FIRST).await;
        }
        self.time_of_cluster().await
    }

    /// Returns the time of the bucket's own server, served or not.
    async fn now_in(&self, bucket: Bucket) -> Result<RegistryTime, Error> {
        self.in_time(false, self.time_of(bucket)).await
    }

    async fn approximate_now_in(&self, bucket: Bucket) -> Result<RegistryTime, Error> {
        self.approximate_time_of(bucket).await
    }

    /// Returns the earliest time of all buckets. `journal_end.lua` raises each bucket's mark to its time, so the mark
    /// keeps later events from an earlier date, even on a server whose clock is set back or runs behind.
    async fn low_watermark(&self) -> Result<RegistryTime, Error> {
        let ends = Bucket::all().map(|bucket| self.call(self.on_bucket(&SCRIPTS.journal_end, bucket)));
        let ends: Vec<_> = stream::iter(ends).buffered(BUCKETS_AT_ONCE).try_collect().await?;
        ends.iter().map(|end| end.now).min().ok_or_else(|| Garbled("there is no bucket").into())
    }

    /// Sweeps the due pools: expires small pools in batches, and sweeps every remaining pool in a step of its
    /// own.
    async fn sweep(&self, bucket: Bucket, max: usize) -> Result<Swept, Error> {
        let max = max.min(DUE_READ_MAX);
        let due_now = self.call(self.on_bucket(&SCRIPTS.due_now, bucket).arg(max + 1));
        let mut reply = self.in_time(false, due_now).await?;
        let mut due = Vec::new();
        while !reply.values.is_at_end() {
            let reference = reply.values.bytes()?;
            let reference = Key::try_from(&*reference).map_err(|_| Garbled("a name in the due-index"))?;
            due.push(PoolKeys::in_bucket(bucket, reference));
        }
        let mut swept = Swept { ended: 0, more: due.len() > max };
        due.truncate(max);
        if due.is_empty() {
            // The head's bound was too early. `due` corrects the bound.
            self.due(bucket).await?;
            return Ok(swept);
        }
        let ExpiryScan { at, expiring, mut others } = self.scan(bucket, &due).await?;
        for expiring in expiring.chunks(SWEPT_TOGETHER) {
            let (ended, changed) = self.expire(bucket, at, expiring).await?;
            swept.ended += ended;
            others.extend(changed);
        }
        // A pool that cannot be swept does not delay the rest.
        let mut failed = None;
        for pools in others.chunks(SWEPT_TOGETHER) {
            let calls: Vec<_> =
                pools.iter().map(|pool| self.on_pool_in(&SCRIPTS.sweep, bucket, pool)).collect();
            for reply in self.call_together(&calls).await {
                match reply {
                    Ok(mut reply) => {
                        self.expect(reply.receipt);
                        swept.ended += reply.values.number()? as usize;
                        swept.more |= reply.values.number()? > 0;
                    }
                    Err(error) => failed = Some(error),
                }
            }
        }
        failed.map_or(Ok(swept), Err)
    }

    async fn due(&self, bucket: Bucket) -> Result<Option<RegistryTime>, Error> {
        let mut reply = self.call(self.on_bucket(&SCRIPTS.due_next, bucket)).await?;
        if reply.values.is_at_end() { Ok(None) } else { Ok(Some(reply.values.time_text()?)) }
    }

    /// Returns the served buckets with a due pool, by the bound in their heads.
    async fn due_buckets(&self) -> Result<Vec<Bucket>, Error> {
        let served = self.served_heads(self.settings.journal_poll).await;
        served.check()?;
        let is_due = |(bucket, standing): &(Bucket, BucketSurvey)| {
            let head = standing.serving_in(self.epochs.get(*bucket));
            head.is_some_and(|head| head.due <= standing.clock)
        };
        Ok(served.heads.iter().filter(|served| is_due(served)).map(|(bucket, _)| *bucket).collect())
    }
}
