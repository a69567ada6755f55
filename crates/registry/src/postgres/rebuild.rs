//! The state of buckets in PostgreSQL, and the steps of a rebuild.

use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::{Bucket, LoadBound, RegistryTime};
use sqlx::SqlSafeStr;

use super::PostgresRegistry;
use super::claim::open_in;
use super::connect::begin_long;
use super::entries::{EntryRow, decode};
use super::fault::Fault;
use super::from_row::from_row;
use super::limit::{answered, answered_long, run};
use super::read_pool::{Locking, Target, read_pool};
use super::row::{signed, unsigned};
use super::section::Section;
use crate::Error;
use crate::contract::{JournalEntry, Receipt};
use crate::rebuild::{Condition, Filling, Identity, Rebuild, State};

/// Sessions deleted by one statement.
const CLEARED_AT_ONCE_MAX: i64 = 5_000;

from_row! {
    struct ConditionRow {
        bucket: i16,
        epoch: i64,
        serving: bool,
    }
}

#[async_trait]
impl Rebuild for PostgresRegistry {
    async fn conditions(&self) -> Vec<Condition> {
        match self.read_conditions().await {
            Ok(conditions) => conditions,
            Err(fault) => {
                tracing::warn!(
                    error = &fault as &dyn std::error::Error,
                    "registry buckets in PostgreSQL cannot be read; all count as unreachable"
                );
                Bucket::all().map(Condition::unreachable).collect()
            }
        }
    }

    async fn rebuild_begin(&self, bucket: Bucket, epoch: u64) -> Result<(), Error> {
        Ok(self.done(include_str!("sql/rebuild_begin.sql"), bucket, epoch).await?)
    }

    async fn rebuild_journal(
        &self,
        bucket: Bucket,
        epoch: u64,
        after: Option<Receipt>,
        max: usize,
    ) -> Result<Vec<JournalEntry>, Error> {
        let read = sqlx::query_as(include_str!("sql/rebuild_journal.sql"))
            .bind(self.section.number_of(bucket))
            .bind(signed(epoch))
            .bind(after.map_or(0, |receipt| signed(receipt.position)))
            .bind(i64::try_from(max).unwrap_or(i64::MAX));
        let rows = run(self.connection().await?, async |connection| read.fetch_all(connection).await).await?;
        let rows: Vec<EntryRow> = rows.map_err(|error| Fault::in_bucket(error, bucket))?;
        let read = decode(&self.section, bucket, &rows);
        self.unreadable.after_rebuild_read(bucket, &self.section.journal_of(bucket), read)
    }

    async fn rebuild_clear(&self, bucket: Bucket, epoch: u64, not_before: RegistryTime) -> Result<(), Error> {
        // A statement that deletes every session of a large bucket takes longer than a statement may.
        while self.clear_sessions(bucket, epoch).await? == CLEARED_AT_ONCE_MAX {}
        let clearing = sqlx::query(include_str!("sql/rebuild_clear.sql"))
            .bind(self.section.number_of(bucket))
            .bind(signed(epoch))
            .bind(signed(not_before.as_millis()));
        let cleared =
            run(self.connection().await?, async |connection| clearing.execute(connection).await).await?;
        cleared.map_err(|error| Fault::in_bucket(error, bucket))?;
        self.unreadable.clear(bucket);
        Ok(())
    }

    async fn rebuild_fill(&self, epoch: u64, pool: Filling<'_>) -> Result<(), Error> {
        Ok(self.fill(epoch, pool).await?)
    }

    async fn rebuild_finish(
        &self,
        bucket: Bucket,
        epoch: u64,
        _identity: Option<&Identity>,
    ) -> Result<(), Error> {
        Ok(self.done(include_str!("sql/rebuild_finish.sql"), bucket, epoch).await?)
    }
}

impl PostgresRegistry {
    async fn read_conditions(&self) -> Result<Vec<Condition>, Fault> {
        let read = sqlx::query_as(include_str!("sql/conditions.sql")).bind(self.section.first());
        let rows: Vec<ConditionRow> =
            run(self.connection().await?, async |connection| read.fetch_all(connection).await).await??;
        rows.into_iter().map(|row| row.read(&self.section)).collect()
    }

    /// Deletes some sessions of a bucket that is to be cleared. Returns the number of deleted sessions.
    async fn clear_sessions(&self, bucket: Bucket, epoch: u64) -> Result<i64, Fault> {
        let clear = sqlx::query_scalar(include_str!("sql/rebuild_clear_sessions.sql"))
            .bind(self.section.number_of(bucket))
            .bind(signed(epoch))
            .bind(CLEARED_AT_ONCE_MAX);
        let cleared = run(self.connection().await?, async |connection| clear.fetch_one(connection).await);
        cleared.await?.map_err(|error| Fault::in_bucket(error, bucket))
    }

    async fn fill(&self, epoch: u64, pool: Filling<'_>) -> Result<(), Fault> {
        let bucket = pool.pool.bucket();
        let connection = self.connection().await?;
        let mut transaction = answered(begin_long(connection)).await??;
        let goes_on = sqlx::query(include_str!("sql/rebuild_goes_on.sql"))
            .bind(self.section.number_of(bucket))
            .bind(signed(epoch))
            .execute(&mut *transaction);
        answered_long(goes_on).await?.map_err(|error| Fault::in_bucket(error, bucket))?;
        let target = Target::pool(pool.pool);
        let read =
            read_pool(&mut transaction, &self.section, Locking::With, target, |_| LoadBound::ONE_SESSION);
        let seen = answered_long(read).await??;
        answered_long(open_in(&mut transaction, &seen, pool)).await??;
        answered_long(transaction.commit()).await?.map_err(Fault::of_commit)
    }

    /// Takes a step on a bucket that is being rebuilt for `epoch`.
    async fn done(&self, step: impl SqlSafeStr, bucket: Bucket, epoch: u64) -> Result<(), Fault> {
        let step = sqlx::query(step).bind(self.section.number_of(bucket)).bind(signed(epoch));
        let made = run(self.connection().await?, async |connection| step.execute(connection).await).await?;
        made.map(drop).map_err(|error| Fault::in_bucket(error, bucket))
    }
}

impl ConditionRow {
    fn read(self, section: &Section) -> Result<Condition, Fault> {
        let epoch = unsigned(self.epoch);
        let state = match (self.serving, epoch) {
            (true, _) => State::Serving { epoch, identity: None, is_leased: true },
            (false, 0) => State::Missing,
            (false, _) => State::Rebuilding { epoch },
        };
        let bucket = section.bucket_of(self.bucket)?;
        Ok(Condition { bucket, server: None, state, latency: Duration::ZERO })
    }
}
