//! The state of buckets in Redis, and the steps of a rebuild. Each step demands the rebuild's epoch, so that
//! a rebuild of a lower epoch fails.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::{Bucket, RegistryTime, Session, Span};

use super::RedisRegistry;
use super::codec::Garbled;
use super::head::{Head, Stage, stamp};
use super::keys::{Key, PoolKeys};
use super::pools::{in_order, with_what_is_known};
use super::scripts::{NEVER_MILLIS, NOT_SERVING, SCRIPTS};
use super::survey::BucketSurvey;
use crate::{Condition, Error, Filling, Identity, JournalEntry, Rebuild, Receipt, State};

/// Pools deleted per step.
const CLEARED_POOLS_MAX: usize = 200;

/// Sessions restored per step.
const FILLED_SESSIONS_MAX: usize = 500;

/// Time limit for the further steps of a rebuild. A rebuild that exceeds the limit, or whose server's clock
/// jumps past the limit, is refused and starts again.
const REBUILD_MAX: Duration = Duration::from_secs(600);

#[async_trait]
impl Rebuild for RedisRegistry {
    async fn conditions(&self) -> Vec<Condition> {
        let survey = self.own_survey().await;
        survey.buckets().map(|(bucket, standing)| condition(bucket, standing)).collect()
    }

    async fn renew_leases(&self) -> Result<(), Error> {
        self.renew_served_leases().await
    }

    async fn rebuild_begin(&self, bucket: Bucket, epoch: u64) -> Result<(), Error> {
        let head = &self.keys.bucket(bucket).head;
        let mut call = SCRIPTS.rebuild_begin.call([head].into_iter());
        call.arg(stamp(Stage::Rebuilding, epoch, ""))
            .arg(self.clock_not_after(bucket).await.as_millis())
            .arg(self.settings.lease.map_or(NEVER_MILLIS, |_| REBUILD_MAX.as_millis() as u64));
        let (begun,): (i64,) = self.requests.servers.run(head, &SCRIPTS.rebuild_begin, &call).await?;
        if begun == NOT_SERVING { Err(Error::NotServing { bucket }) } else { Ok(()) }
    }

    async fn rebuild_journal(
        &self,
        bucket: Bucket,
        epoch: u64,
        after: Option<Receipt>,
        max: usize,
    ) -> Result<Vec<JournalEntry>, Error> {
        self.check_stage(bucket, Stage::Rebuilding, epoch).await?;
        self.read_journal_after(bucket, after, max).await
    }

    async fn rebuild_clear(&self, bucket: Bucket, epoch: u64, not_before: RegistryTime) -> Result<(), Error> {
        let keys = self.keys.bucket(bucket);
        loop {
            let mut some = redis::cmd("ZRANGE");
            some.arg(&keys.due).arg(0).arg(CLEARED_POOLS_MAX - 1);
            let some: Vec<Vec<u8>> = self.query(bucket, &some).await?;
            let mut all_keys =
                [&keys.head, &keys.due, &keys.journal, &keys.admissions].map(Clone::clone).to_vec();
            for reference in &some {
                let reference =
                    Key::try_from(&**reference).map_err(|_| Garbled("a name in the due-index"))?;
                let PoolKeys { pool, sessions, order, .. } = PoolKeys::in_bucket(bucket, reference);
                all_keys.extend([pool, sessions, order]);
            }
            let call = self.on_keys(&SCRIPTS.rebuild_clear, bucket, all_keys.iter());
            let call =
                some.iter().fold(call, |call, reference| call.arg(reference)).arg(not_before.as_millis());
            let cleared = self.call(call.in_epoch(Stage::Rebuilding, epoch)).await;
            if matches!(cleared, Err(Error::NotServing { .. })) {
                // The last step may have been taken by an earlier call, whose reply was lost.
                return self.check_stage(bucket, Stage::Filling, epoch).await;
            }
            if cleared?.values.number()? == 0 {
                self.unreadable.clear(bucket);
                return Ok(());
            }
        }
    }

    async fn rebuild_fill(&self, epoch: u64, filling: Filling<'_>) -> Result<(), Error> {
        let Filling { pool, seq, terms, live } = filling;
        let mut live = live.to_vec();
        in_order(&mut live);
        // A pool without sessions is opened as well.
        let parts: Vec<&[Session]> =
            if live.is_empty() { vec![&[]] } else { live.chunks(FILLED_SESSIONS_MAX).collect() };
        for part in parts {
            let call = self.on_pool(&SCRIPTS.rebuild_fill, pool);
            let call = with_what_is_known(call, pool, seq, terms, part);
            self.call(call.in_epoch(Stage::Filling, epoch)).await?;
        }
        self.remember_all(pool, &live);
        Ok(())
    }

    async fn rebuild_finish(
        &self,
        bucket: Bucket,
        epoch: u64,
        identity: Option<&Identity>,
    ) -> Result<(), Error> {
        let link = self.requests.servers.link(self.slots.get(bucket)).await?;
        let server = link.identity_now().await?;
        if identity.is_some_and(|identity| *identity.0 != *server) {
            return Err(Error::NotServing { bucket });
        }
        let served = stamp(Stage::Serving, epoch, &server);
        let call = self.on_bucket(&SCRIPTS.rebuild_finish, bucket).in_epoch(Stage::Filling, epoch);
        match self.call(call.arg(served).arg(self.lease_millis())).await {
            // The bucket may serve already, by an earlier call whose reply was lost.
            Err(Error::NotServing { .. }) => self.check_stage(bucket, Stage::Serving, epoch).await,
            finished => finished.map(drop),
        }
    }
}

impl RedisRegistry {
    /// Checks that a bucket is in `stage` of `epoch`. Returns [`Error::NotServing`] otherwise.
    async fn check_stage(&self, bucket: Bucket, stage: Stage, epoch: u64) -> Result<(), Error> {
        let call = self.on_bucket(&SCRIPTS.journal_end, bucket);
        self.call(call.in_epoch(stage, epoch)).await.map(drop)
    }

    fn lease_millis(&self) -> u64 {
        self.settings.lease.map_or(NEVER_MILLIS, |lease| lease.as_millis() as u64)
    }

    /// Returns an upper bound of the clock of a bucket's server, provided that the clock has not jumped since
    /// the latest survey.
    async fn clock_not_after(&self, bucket: Bucket) -> RegistryTime {
        let never = RegistryTime::from_millis(NEVER_MILLIS);
        let Some(lease) = self.settings.lease else { return never };
        let survey = self.survey(lease).await;
        let standing = survey.buckets().find(|(surveyed, _)| *surveyed == bucket);
        match standing {
            Some((_, Ok(standing))) => standing.clock + Span::from_millis(2 * lease.as_millis() as u64),
            Some((_, Err(_))) | None => never,
        }
    }
}

/// Returns the condition of a bucket from a survey.
fn condition(bucket: Bucket, standing: &Result<BucketSurvey, Arc<str>>) -> Condition {
    let Ok(BucketSurvey { server, clock, head, latency }) = standing else {
        return Condition::unreachable(bucket);
    };
    let state = match head {
        None => State::Missing,
        Some(Head { stage: Stage::Rebuilding | Stage::Filling, epoch, .. }) => {
            State::Rebuilding { epoch: *epoch }
        }
        Some(Head { stage: Stage::Serving, epoch, identity, leased_until, .. }) => State::Serving {
            epoch: *epoch,
            identity: Some(identity.clone()),
            is_leased: clock <= leased_until,
        },
    };
    Condition { bucket, server: Some(server.clone()), state, latency: *latency }
}
