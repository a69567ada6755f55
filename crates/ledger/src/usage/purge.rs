//! Purges old, delivered usage.

use chrono::{DateTime, Utc};
use seatkeeper_core::RegistryTime;

use crate::jobs::{Fence, fence};
use crate::{Error, Ledger, times};

impl Ledger {
    /// Deletes at most `batch` delivered batches of windows that ended before `before`, and at most `batch`
    /// windows left without batches, in one transaction. Returns `true` if more may be old enough.
    /// Undelivered batches and the last window stay.
    pub async fn purge_usage(&self, run: &Fence, before: RegistryTime, batch: u32) -> Result<bool, Error> {
        let mut tx = self.write().await?;
        fence::hold(&mut tx, run).await?;
        let mut more = false;
        for statement in
            [include_str!("../../sql/purge_batches.sql"), include_str!("../../sql/purge_windows.sql")]
        {
            let done =
                tx.query(statement).bind(times::stored(before)).bind(i64::from(batch)).execute().await?;
            more |= done >= u64::from(batch);
        }
        tx.commit().await?;
        Ok(more)
    }

    /// Returns the end of the last usage window on record, if any.
    pub(crate) async fn metered_until(&self) -> Result<Option<RegistryTime>, Error> {
        let ends: Option<DateTime<Utc>> =
            self.readers().query(include_str!("../../sql/metered_until.sql")).scalar().await?;
        Ok(ends.map(times::from_stored))
    }
}
