//! Purges old, delivered usage.

use chrono::{DateTime, Utc};
use seatkeeper_core::RegistryTime;

use crate::jobs::{Fence, JobName, fence};
use crate::{Error, Ledger, times};

impl Ledger {
    /// Deletes at most `batch` delivered batches of windows that ended before `before`, and at most `batch`
    /// windows left without batches, in one transaction. Returns `true` if more may be old enough.
    /// Undelivered batches, the delivered batches beside them, and the last window stay.
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
    pub async fn usage_metered_until(&self) -> Result<Option<RegistryTime>, Error> {
        let ends: Option<DateTime<Utc>> =
            self.readers().query(include_str!("../../sql/metered_until.sql")).scalar().await?;
        Ok(ends.map(times::from_stored))
    }

    /// Returns the time up to which usage is metered: the end of the last usage window, or 1970 before the first
    /// window. Returns `None` for a ledger of which no node ever metered usage.
    pub(crate) async fn metered_bound(&self) -> Result<Option<RegistryTime>, Error> {
        if let Some(ends) = self.usage_metered_until().await? {
            return Ok(Some(ends));
        }
        let is_metered = self.jobs_due().await?.contains_key(&JobName::UsageEmission);
        Ok(is_metered.then(RegistryTime::default))
    }
}
