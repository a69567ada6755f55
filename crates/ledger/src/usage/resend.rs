//! Dead batches are sent again by an operator's word.

use seatkeeper_core::{RegistryTime, TenantId};
use uuid::Uuid;

use super::list::BatchPosition;
use crate::database::Row;
use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger, times};

/// Batches made pending in one transaction. Admissions wait behind the transaction.
const BATCHES_PER_COMMIT_MAX: usize = 500;

impl Ledger {
    /// Makes a dead batch of the tenant pending again, with its attempts reset. Returns `true` if the batch
    /// was dead.
    pub async fn send_usage_again(
        &self,
        tenant: &TenantId,
        batch: Uuid,
        now: RegistryTime,
    ) -> Result<bool, Error> {
        let mut tx = self.write().await?;
        let done = tx
            .query(include_str!("../../sql/send_batch_again.sql"))
            .bind(tenant.as_str())
            .bind(batch)
            .bind(times::stored(now))
            .execute()
            .await?;
        tx.commit().await?;
        Ok(done == 1)
    }

    /// Makes all dead batches of the tenant pending again, with their attempts reset. Returns the number of batches. A
    /// batch that the sink refuses again meanwhile is not sent a second time. After an error or a dropped call some
    /// batches may be pending.
    pub async fn send_dead_usage_again(&self, tenant: &TenantId, now: RegistryTime) -> Result<u64, Error> {
        let (mut after, mut sent) = (BatchPosition::default(), 0);
        loop {
            let mut tx = self.write().await?;
            let rows = tx
                .query(include_str!("../../sql/send_dead_batches_again.sql"))
                .bind(tenant.as_str())
                .bind(times::stored(now))
                .bind(times::stored(after.window_starts))
                .bind(stored_whole(after.number))
                .bind(stored_whole(BATCHES_PER_COMMIT_MAX as u64))
                .fetch_all()
                .await?;
            tx.commit().await?;
            sent += rows.len() as u64;
            let positions = rows.iter().map(BatchPosition::read).collect::<Result<Vec<_>, _>>()?;
            match positions.into_iter().max() {
                Some(last) if rows.len() == BATCHES_PER_COMMIT_MAX => after = last,
                Some(_) | None => return Ok(sent),
            }
        }
    }
}

impl BatchPosition {
    fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self { window_starts: fields.time("window_starts_at")?, number: fields.whole("batch")? })
    }
}
