//! Delivery of usage batches to the sink.

use chrono::{DateTime, Utc};
use seatkeeper_core::{RegistryTime, Span, TenantId, Window};
use uuid::Uuid;

use super::record::{UsageRecord, records_of};
use super::split::{Cause, split};
use crate::database::Row;
use crate::jobs::{Fence, fence};
use crate::row::Fields;
use crate::{Error, Ledger, times};

/// A batch due for delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueBatch {
    /// The batch's id. The sink detects repetitions by the id.
    pub id: Uuid,
    /// The tenant of the sessions.
    pub tenant: TenantId,
    /// The window.
    pub window: Window,
    /// Attempts since the batch was created or sent again.
    pub attempts: u32,
    /// The sink's last answers in a row with status 404.
    pub not_found: u32,
    /// An earlier attempt was sent and got no clear answer, so the sink may have the batch. Only attempts under the
    /// same id may follow, also after the batch was dead.
    pub may_be_stored: bool,
    /// The due time of the attempt.
    pub due: RegistryTime,
    /// The batch's records.
    pub records: Vec<UsageRecord>,
}

/// The result of an attempt to deliver a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The sink accepted the batch.
    Delivered {
        /// The HTTP status of the response.
        status: u16,
        /// The time of the response.
        at: RegistryTime,
    },
    /// The attempt failed, and a retry follows.
    Retry {
        /// The HTTP status, if a response came.
        status: Option<u16>,
        /// The error, in a bounded text.
        error: String,
        /// The attempt was sent and got no clear answer, so the sink may have the batch.
        may_be_stored: bool,
        /// The time of the retry.
        at: RegistryTime,
    },
    /// The sink refused the batch as too large, and does not have it. Two batches with half of the records each take its
    /// place.
    Split {
        /// The time of the response.
        at: RegistryTime,
    },
    /// The sink refused a batch of several records for good, maybe for the sake of one record, and does not have it.
    /// The batch is split like a batch that is too large, or dead after too many such splits.
    Refused {
        /// The HTTP status of the response.
        status: u16,
        /// The sink's error, in a bounded text.
        error: String,
        /// The time of the response.
        at: RegistryTime,
    },
    /// The sink refused the batch for good. An operator may send the batch again.
    Dead {
        /// The HTTP status of the response.
        status: u16,
        /// The sink's error, in a bounded text.
        error: String,
        /// The time of the response.
        at: RegistryTime,
    },
}

/// Longest backoff of a delivery. A batch that is due later was dated by a wrong clock.
pub const DELIVERY_BACKOFF_MAX: Span = Span::from_secs(300);

/// Batches recalled in one transaction. Admissions wait behind the transaction.
const RECALLED_PER_COMMIT_MAX: u32 = 500;

impl Ledger {
    /// Makes due at `now` every pending batch that is due more than [`DELIVERY_BACKOFF_MAX`] later: a wrong clock dated
    /// the batch.
    pub async fn recall_usage(&self, now: RegistryTime, fence: &Fence) -> Result<(), Error> {
        let latest = now + DELIVERY_BACKOFF_MAX;
        while self.latest_due_usage().await? > Some(latest) {
            let mut tx = self.write().await?;
            fence::hold(&mut tx, fence).await?;
            tx.query(include_str!("../../sql/recall_batches.sql"))
                .bind(times::stored(now))
                .bind(times::stored(latest))
                .bind(i64::from(RECALLED_PER_COMMIT_MAX))
                .execute()
                .await?;
            tx.commit().await?;
        }
        Ok(())
    }

    /// Returns the latest due time of a pending batch.
    async fn latest_due_usage(&self) -> Result<Option<RegistryTime>, Error> {
        let latest: Option<DateTime<Utc>> =
            self.readers().query(include_str!("../../sql/latest_due_batch.sql")).scalar().await?;
        Ok(latest.map(times::from_stored))
    }

    /// Returns at most `max` batches due at `now`, longest due first, after batch `after` if given.
    pub async fn due_usage(
        &self,
        now: RegistryTime,
        after: Option<(RegistryTime, Uuid)>,
        max: u32,
    ) -> Result<Vec<DueBatch>, Error> {
        let (due, id) = after.unwrap_or_default();
        let rows = self
            .readers()
            .query(include_str!("../../sql/due_batches.sql"))
            .bind(times::stored(now))
            .bind(times::stored(due))
            .bind(id)
            .bind(i64::from(max))
            .fetch_all()
            .await?;
        rows.iter().map(DueBatch::read).collect()
    }

    /// Records the result of an attempt. Only a pending batch changes. Returns the result on record: a
    /// [`Settlement::Refused`] batch that is not split is [`Settlement::Dead`].
    pub async fn settle_usage(
        &self,
        batch: Uuid,
        settlement: Settlement,
        fence: &Fence,
    ) -> Result<Settlement, Error> {
        let mut tx = self.write().await?;
        fence::hold(&mut tx, fence).await?;
        let is_split = match &settlement {
            Settlement::Split { at } => split(&mut tx, batch, *at, Cause::Size).await?,
            Settlement::Refused { at, .. } => split(&mut tx, batch, *at, Cause::Refusal).await?,
            Settlement::Delivered { .. } | Settlement::Retry { .. } | Settlement::Dead { .. } => false,
        };
        let settlement = if is_split { settlement } else { settlement.without_split() };
        let (state, at, status, error, delivered) = match &settlement {
            Settlement::Delivered { status, at } => ("delivered", at, Some(*status), None, Some(at)),
            Settlement::Retry { status, error, at, .. } => ("pending", at, *status, Some(error), None),
            Settlement::Dead { status, error, at } => ("dead", at, Some(*status), Some(error), None),
            Settlement::Split { .. } | Settlement::Refused { .. } => {
                tx.commit().await?;
                return Ok(settlement);
            }
        };
        let may_be_stored = matches!(settlement, Settlement::Retry { may_be_stored: true, .. });
        let done = tx
            .query(include_str!("../../sql/settle_batch.sql"))
            .bind(batch)
            .bind(state)
            .bind(times::stored(*at))
            .bind(status.map(i64::from))
            .bind(error)
            .bind(delivered.map(|at| times::stored(*at)))
            .bind(i64::from(may_be_stored))
            .execute()
            .await?;
        if done == 1 && delivered.is_some() {
            tx.query(include_str!("../../sql/drop_payload.sql")).bind(batch).execute().await?;
        }
        tx.commit().await?;
        Ok(settlement)
    }
}

impl Settlement {
    /// Returns the result for a batch that is not split.
    fn without_split(self) -> Self {
        if let Self::Refused { status, error, at } = self { Self::Dead { status, error, at } } else { self }
    }
}

impl DueBatch {
    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        let window = fields.window()?;
        Ok(Self {
            id: fields.value("id")?,
            tenant: TenantId::new(fields.value::<&str>("tenant_id")?),
            window,
            attempts: fields.small("attempts")?,
            not_found: fields.small("not_found")?,
            may_be_stored: fields.whole("may_be_stored")? > 0,
            due: fields.time("next_attempt_at")?,
            records: records_of(fields.value("payload")?, window.starts())?,
        })
    }
}
