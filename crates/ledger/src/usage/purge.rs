//! Usage that is old and delivered is deleted.

use seatkeeper_core::RegistryTime;

use crate::{Error, Ledger, times};

impl Ledger {
    /// Deletes at most `batch` delivered batches of windows that ended before `before`, and as many windows
    /// of which nothing is left, in one transaction, and says whether more may be old enough. What the sink
    /// does not have stays, and so does the last window.
    pub async fn purge_usage(&self, before: RegistryTime, batch: u32) -> Result<bool, Error> {
        let mut tx = self.write().await?;
        let mut more = false;
        for statement in
            [include_str!("../../sql/purge_batches.sql"), include_str!("../../sql/purge_windows.sql")]
        {
            let done =
                sqlx::query(statement).bind(times::stored(before)).bind(batch).execute(&mut *tx).await?;
            more |= done.rows_affected() >= u64::from(batch);
        }
        tx.commit().await?;
        Ok(more)
    }
}
