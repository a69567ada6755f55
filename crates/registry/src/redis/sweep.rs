//! The clock, and what it brings about.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use seatkeeper_core::{Bucket, RegistryTime, Span};

use super::RedisRegistry;
use super::call::{Call, warn_of_step};
use super::codec::Garbled;
use super::keys::{BucketKeys, Key, PoolKeys};
use super::reply::Reply;
use super::scripts::SCRIPTS;
use crate::Error;
use crate::contract::Swept;

/// Pools that are looked up at a time, whatever was asked for.
const DUE_READ_MAX: usize = 1_000;

/// Pools of a bucket that are swept at the same time. Those who want in share the server with them.
const SWEPT_AT_ONCE: usize = 4;

impl RedisRegistry {
    /// The time, whether anything is served or not. Where servers differ, it is that of the first bucket's.
    pub(super) async fn time(&self) -> Result<RegistryTime, Error> {
        let Some(bucket) = Bucket::all().next() else { return Err(Garbled("there is no bucket").into()) };
        let call = Call::on(&SCRIPTS.now, bucket, [&self.keys.of(bucket).head].into_iter());
        let mut reply = Reply::of(self.run(&call).await?)?;
        let now = reply.time()?;
        warn_of_step(Span::from_millis(reply.number()?));
        Ok(now)
    }

    pub(super) async fn due_next(&self, bucket: Bucket) -> Result<Option<RegistryTime>, Error> {
        let BucketKeys { head, due, journal, alarm } = self.keys.of(bucket);
        let call = Call::on(&SCRIPTS.due_next, bucket, [head, due, journal, alarm].into_iter());
        let (_, mut reply) = self.told(call).await?;
        if reply.is_at_end() { Ok(None) } else { Ok(Some(reply.time_text()?)) }
    }

    /// Sweeps the pools that are due, each in a step of its own.
    pub(super) async fn sweep_bucket(&self, bucket: Bucket, max: usize) -> Result<Swept, Error> {
        let max = max.min(DUE_READ_MAX);
        let due = Call::on_bucket(&SCRIPTS.due_now, bucket, self.keys.of(bucket)).arg(max + 1);
        let (_, mut reply) = self.told(due).await?;
        let mut due = Vec::new();
        while !reply.is_at_end() {
            let reference = reply.bytes()?;
            due.push(Key::try_from(&*reference).map_err(|_| Garbled("a name in the due-index"))?);
        }
        let more = due.len() > max;
        due.truncate(max);
        let due = due.into_iter().map(|reference| self.sweep_pool(bucket, reference));
        let swept = stream::iter(due.collect::<Vec<_>>()).buffer_unordered(SWEPT_AT_ONCE);
        let sum = |sum: Swept, swept: Swept| async move {
            Ok(Swept { ended: sum.ended + swept.ended, more: sum.more || swept.more })
        };
        swept.try_fold(Swept { ended: 0, more }, sum).await
    }

    async fn sweep_pool(&self, bucket: Bucket, reference: Key) -> Result<Swept, Error> {
        let keys = PoolKeys::in_bucket(bucket, reference);
        let call = Call::on_pool(&SCRIPTS.sweep, bucket, self.keys.of(bucket), &keys);
        let (preamble, mut reply) = self.told(call).await?;
        self.expected(preamble, bucket);
        Ok(Swept { ended: reply.number()? as usize, more: reply.number()? > 0 })
    }
}
