//! Batches on their way to the sink.

use seatkeeper_core::{RegistryTime, TenantId, Window};
use uuid::Uuid;

use super::record::{UsageRecord, records_of};
use crate::database::Row;
use crate::jobs::{Fence, fence};
use crate::row::Fields;
use crate::{Error, Ledger, times};

/// A batch that is to be delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DueBatch {
    /// Its name: what a sink knows a repetition by.
    pub id: Uuid,
    /// Whose sessions it is about.
    pub tenant: TenantId,
    /// The window.
    pub window: Window,
    /// How often it was tried before, since it was made or sent again.
    pub attempts: u32,
    /// Since when it is due.
    pub due: RegistryTime,
    /// What it says.
    pub records: Vec<UsageRecord>,
}

/// What came of an attempt to deliver a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The sink has it.
    Delivered {
        /// The status it answered.
        status: u16,
        /// When.
        at: RegistryTime,
    },
    /// It is to be tried again.
    Retry {
        /// The status, if there was an answer.
        status: Option<u16>,
        /// What went wrong, in a bounded text.
        error: String,
        /// From when on.
        at: RegistryTime,
    },
    /// The sink will never take it as it is; an operator may send it again.
    Dead {
        /// The status it answered.
        status: u16,
        /// What it said, in a bounded text.
        error: String,
        /// When.
        at: RegistryTime,
    },
}

impl Ledger {
    /// At most `max` batches whose next attempt is due at `now`, the longest due first; those after
    /// `after`, if it is given.
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

    /// Notes what came of an attempt. A batch that is no longer pending stays as it is.
    pub async fn settle_usage(
        &self,
        batch: Uuid,
        settlement: &Settlement,
        fence: &Fence,
    ) -> Result<(), Error> {
        let (state, at, status, error, delivered) = match settlement {
            Settlement::Delivered { status, at } => ("delivered", at, Some(*status), None, Some(at)),
            Settlement::Retry { status, error, at } => ("pending", at, *status, Some(error), None),
            Settlement::Dead { status, error, at } => ("dead", at, Some(*status), Some(error), None),
        };
        let mut tx = self.write().await?;
        fence::hold(&mut tx, fence).await?;
        let done = tx
            .query(include_str!("../../sql/settle_batch.sql"))
            .bind(batch)
            .bind(state)
            .bind(times::stored(*at))
            .bind(status.map(i64::from))
            .bind(error)
            .bind(delivered.map(|at| times::stored(*at)))
            .execute()
            .await?;
        if done == 1 && delivered.is_some() {
            tx.query(include_str!("../../sql/drop_payload.sql")).bind(batch).execute().await?;
        }
        tx.commit().await
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
            due: fields.time("next_attempt_at")?,
            records: records_of(fields.value("payload")?, window.starts())?,
        })
    }
}
