//! The registry's clock, and the sweep of due pools, many pools per transaction.

use async_trait::async_trait;
use seatkeeper_core::{Bucket, LoadBound, PoolId, RegistryTime};
use seatkeeper_host_clock::HostInstant;
use sqlx::PgConnection;

use super::PostgresRegistry;
use super::clock::TimeTold;
use super::connect::begin_long;
use super::fault::Fault;
use super::from_row::from_row;
use super::limit::run;
use super::read_pool::{Locking, PoolSnapshot, Target, read_pool};
use super::row::{Served, time, unsigned};
use super::step::CALL_TIMEOUT;
use super::unreadable::Unreadable;
use super::write::{Change, Columns, Events, Fate};
use crate::Error;
use crate::clock_estimate::Estimate;
use crate::contract::{Expiry, Receipt, Swept, TimeReading};

/// Maximum number of attempts. A heartbeat of a session about to end causes a conflict.
const ATTEMPTS_MAX: usize = 4;

/// Pools swept per transaction. Claims and heartbeats of the bucket wait meanwhile.
const SWEPT_TOGETHER: usize = 64;

/// The receipt of the last written event, and the number of written events.
type Written = (Receipt, usize);

from_row! {
    /// A due pool; null if no pool is due.
    struct DueRow {
        kind: Option<String>,
        tenant: Option<String>,
        name: Option<String>,
    }
}

from_row! {
    /// The buckets with due pools, and the number of the section's events that wait for the ledger.
    struct DueBucketsRow {
        depth: i64,
        buckets: Vec<i16>,
        epochs: Vec<i64>,
    }
}

from_row! {
    struct EarliestRow {
        due: Option<i64>,
    }
}

#[async_trait]
impl Expiry for PostgresRegistry {
    async fn now(&self) -> Result<RegistryTime, Error> {
        Ok(self.read_time().await?.now)
    }

    async fn read_time(&self) -> Result<TimeReading, Error> {
        let TimeTold { now, is_frozen, .. } = self.tell_time(None).await?;
        Ok(TimeReading { now, is_frozen })
    }

    /// Returns the time of the bucket, which dates of another store may have put ahead of the clock.
    async fn now_in(&self, bucket: Bucket) -> Result<RegistryTime, Error> {
        Ok(self.tell_time(Some(bucket)).await?.now_in_bucket)
    }

    async fn approximate_now_in(&self, _bucket: Bucket) -> Result<RegistryTime, Error> {
        match self.clock_estimate.known() {
            Estimate::Time(time) => Ok(time),
            Estimate::Ask(_turn) => self.now().await,
        }
    }

    async fn due(&self, bucket: Bucket) -> Result<Option<RegistryTime>, Error> {
        let read = sqlx::query_as(include_str!("sql/due.sql")).bind(self.section.number_of(bucket));
        let Served { epoch, serving, rest: EarliestRow { due } } =
            run(self.connection().await?, async |connection| read.fetch_one(connection).await).await??;
        self.serves(bucket, epoch, serving)?;
        Ok(due.map(time))
    }

    /// Returns the served buckets with due pools. The same statement reads the depth of the journal, and
    /// saves the drain a statement while the journal is empty.
    async fn due_buckets(&self) -> Result<Vec<Bucket>, Error> {
        let read = sqlx::query_as(include_str!("sql/due_buckets.sql")).bind(self.section.first());
        let DueBucketsRow { depth, buckets, epochs } =
            run(self.connection().await?, async |connection| read.fetch_one(connection).await).await??;
        self.backlog.is(depth);
        let mut due = Vec::new();
        for (bucket, epoch) in buckets.into_iter().zip(epochs) {
            let bucket = self.section.bucket_of(bucket)?;
            due.extend((self.section.epoch(bucket) == unsigned(epoch)).then_some(bucket));
        }
        Ok(due)
    }

    async fn sweep(&self, bucket: Bucket, pools_max: usize) -> Result<Swept, Error> {
        let pools_max = pools_max.min(SWEPT_TOGETHER);
        let sweeping = async {
            let _turn = self.turn(bucket).await;
            for _ in 0..ATTEMPTS_MAX {
                let connection = self.connection().await?;
                let mut transaction = begin_long(connection).await?;
                match self.sweep_in(&mut transaction, bucket, pools_max).await {
                    Err(Fault::Conflict) => transaction.rollback().await?,
                    Err(fault) => return Err(fault),
                    Ok((swept, written)) => {
                        transaction.commit().await.map_err(Fault::of_commit)?;
                        written.into_iter().for_each(|(receipt, events)| self.backlog.told(receipt, events));
                        return Ok(swept);
                    }
                }
            }
            Err(Fault::Conflict)
        };
        Ok(tokio::time::timeout(CALL_TIMEOUT, sweeping).await??)
    }
}

impl PostgresRegistry {
    /// Reads the time of the section, and of a bucket in the section.
    async fn tell_time(&self, bucket: Option<Bucket>) -> Result<TimeTold, Fault> {
        let connection = self.connection().await?;
        let asked = HostInstant::now();
        let bucket = bucket.map(|bucket| self.section.number_of(bucket));
        let told = self.clock.tell_time(connection, self.section.first(), bucket).await?;
        if told.runs {
            self.clock_estimate.note(told.now, asked);
        }
        Ok(told)
    }

    /// Sweeps due pools within a transaction. Returns the receipts and event counts of the swept pools as
    /// well.
    async fn sweep_in(
        &self,
        transaction: &mut PgConnection,
        bucket: Bucket,
        pools_max: usize,
    ) -> Result<(Swept, Vec<Written>), Fault> {
        let asked = i64::try_from(pools_max).unwrap_or(i64::MAX).saturating_add(1);
        let rows: Vec<Served<DueRow>> = sqlx::query_as(include_str!("sql/due_pools.sql"))
            .bind(self.section.number_of(bucket))
            .bind(asked)
            .fetch_all(&mut *transaction)
            .await?;
        let mut due = Vec::new();
        for Served { epoch, serving, rest } in rows {
            self.serves(bucket, epoch, serving)?;
            due.extend(rest.read()?);
        }
        let mut swept = Swept { ended: 0, more: due.len() > pools_max };
        let mut written = Vec::new();
        for pool in due.iter().take(pools_max) {
            let Some((ended, events)) = self.sweep_pool(transaction, pool).await? else { continue };
            swept.ended += ended;
            written.push(events);
        }
        Ok((swept, written))
    }

    /// Sweeps a pool. Returns the number of ended sessions, or `None` if the pool is closed.
    async fn sweep_pool(
        &self,
        transaction: &mut PgConnection,
        pool: &PoolId,
    ) -> Result<Option<(usize, Written)>, Fault> {
        let load_bound = |seen: &PoolSnapshot| LoadBound::to_forget(seen.terms, seen.now);
        let mut seen =
            read_pool(transaction, &self.section, Locking::With, Target::pool(pool), load_bound).await?;
        self.serves(seen.bucket, seen.epoch, seen.serving)?;
        let Some(mut open) = seen.open.take() else { return Ok(None) };
        let before = Some(Columns::new(&open, seen.now));
        let mut events = Events::of_step(&seen);
        let sweeping = open.sweep(seen.acknowledged, seen.now, &mut events);
        open.become_due(seen.now);
        let fate = if sweeping.may_close { Fate::Closed } else { Fate::Open };
        let change = Change { seen: &seen, before, open: &open, events: &events, fate };
        let receipt = change.write(transaction).await?;
        Ok(Some((sweeping.ended.len(), (receipt, events.count()))))
    }
}

impl DueRow {
    fn read(self) -> Result<Option<PoolId>, Unreadable> {
        let (Some(kind), Some(tenant), Some(name)) = (self.kind, self.tenant, self.name) else {
            return Ok(None);
        };
        let kind = kind.parse()?;
        Ok(Some(PoolId::new(kind, tenant.as_str().into(), name)))
    }
}
