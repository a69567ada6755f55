//! Usage that is old and delivered is deleted.

use chrono::{DateTime, Utc};
use seatkeeper_core::RegistryTime;

use crate::jobs::{Fence, fence};
use crate::{Error, Ledger, times};

impl Ledger {
    /// Deletes at most `batch` delivered batches of windows that ended before `before`, and as many windows
    /// of which nothing is left, in one transaction, and says whether more may be old enough. What the sink
    /// does not have stays, and so does the last window.
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

    /// Until when usage is on record, if any is.
    pub(crate) async fn metered_until(&self) -> Result<Option<RegistryTime>, Error> {
        let ends: Option<DateTime<Utc>> =
            self.readers().query(include_str!("../../sql/metered_until.sql")).scalar().await?;
        Ok(ends.map(times::from_stored))
    }
}
