//! The clock, and what it brings about.

use seatkeeper_core::{Bucket, RegistryTime, Span};

use super::RedisRegistry;
use super::call::{Call, warn_of_step};
use super::codec::Garbled;
use super::expire::Look;
use super::keys::{Key, PoolKeys};
use super::reply::Reply;
use super::scripts::SCRIPTS;
use super::survey::BucketSurvey;
use crate::Error;
use crate::contract::Swept;

/// Pools that are looked up, and read, at a time, whatever was asked for.
const DUE_READ_MAX: usize = 1_000;

/// Pools in which one command ends what is over, while nobody else is served: a millisecond or two.
const SWEPT_TOGETHER: usize = 32;

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
        let call = Call::on_bucket(&SCRIPTS.due_next, bucket, self.keys.of(bucket));
        let (_, mut reply) = self.told(call).await?;
        if reply.is_at_end() { Ok(None) } else { Ok(Some(reply.time_text()?)) }
    }

    /// The served buckets whose heads say that a pool is due.
    pub(super) async fn buckets_due(&self) -> Result<Vec<Bucket>, Error> {
        let served = self.served_heads(self.settings.journal_poll).await?;
        let is_due = |(bucket, standing): &(Bucket, BucketSurvey)| {
            let head = standing.serving_in(self.epochs.of(*bucket));
            head.is_some_and(|head| head.due <= standing.clock)
        };
        Ok(served.iter().filter(|served| is_due(served)).map(|(bucket, _)| *bucket).collect())
    }

    /// Sweeps the pools that are due: what is over in small ones in steps of many pools, and each other pool in a step of its own.
    pub(super) async fn sweep_bucket(&self, bucket: Bucket, max: usize) -> Result<Swept, Error> {
        let max = max.min(DUE_READ_MAX);
        let due = Call::on_bucket(&SCRIPTS.due_now, bucket, self.keys.of(bucket)).arg(max + 1);
        let (_, mut reply) = self.told(due).await?;
        let mut due = Vec::new();
        while !reply.is_at_end() {
            let reference = reply.bytes()?;
            let reference = Key::try_from(&*reference).map_err(|_| Garbled("a name in the due-index"))?;
            due.push(PoolKeys::in_bucket(bucket, reference));
        }
        let mut swept = Swept { ended: 0, more: due.len() > max };
        due.truncate(max);
        if due.is_empty() {
            // The bound in the head was too early: the next look is when the first pool is really due.
            self.due_next(bucket).await?;
            return Ok(swept);
        }
        let Look { at, expiring, mut others } = self.look(bucket, &due).await?;
        for expiring in expiring.chunks(SWEPT_TOGETHER) {
            let (ended, changed) = self.expire(bucket, at, expiring).await?;
            swept.ended += ended;
            others.extend(changed);
        }
        // One that cannot be swept holds up no other.
        let mut failed = None;
        for pools in others.chunks(SWEPT_TOGETHER) {
            let calls =
                pools.iter().map(|pool| Call::on_pool(&SCRIPTS.sweep, bucket, self.keys.of(bucket), pool));
            for told in self.told_together(bucket, calls).await? {
                match told {
                    Ok((preamble, mut reply)) => {
                        self.expected(preamble, bucket);
                        swept.ended += reply.number()? as usize;
                        swept.more |= reply.number()? > 0;
                    }
                    Err(error) => failed = Some(error),
                }
            }
        }
        failed.map_or(Ok(swept), Err)
    }
}
