//! Metering in a copy of the ledger.
//!
//! A promoted standby or a restored backup may lack the last windows, which the sink has. The next window of the copy
//! would start where a lost window started, and have its ids: the sink would drop the window, and the rest of the
//! window would never be billed. So a copy adds no window until an operator confirms that the sink knows no window
//! beyond the last window of the copy.

use crate::jobs::{Fence, fence};
use crate::row::Fields;
use crate::{Error, Ledger};

impl Ledger {
    /// Returns `true` if the ledger is a copy of the ledger whose windows the sink knows. Then no window is added.
    pub async fn is_usage_held(&self) -> Result<bool, Error> {
        let (present, metered) = self.usage_ledger().await?;
        Ok(metered.is_some_and(|metered| metered != present))
    }

    /// Records an operator's word that the sink knows no window beyond the last window of this ledger.
    pub async fn confirm_usage(&self) -> Result<(), Error> {
        let mut tx = self.write().await?;
        tx.query(include_str!("../../sql/confirm_usage_ledger.sql")).execute().await?;
        tx.commit().await
    }

    /// Returns `Err(UsageHeld)` in a copy of the ledger. The first emission ever notes the ledger.
    pub(super) async fn refuse_in_copy(&self, run: &Fence) -> Result<(), Error> {
        match self.usage_ledger().await? {
            (present, Some(metered)) if metered != present => Err(Error::UsageHeld),
            (_, Some(_)) => Ok(()),
            (_, None) => {
                let mut tx = self.write().await?;
                fence::hold(&mut tx, run).await?;
                tx.query(include_str!("../../sql/note_usage_ledger.sql")).execute().await?;
                tx.commit().await
            }
        }
    }

    /// Returns the identity of this ledger, and of the ledger whose windows the sink knows, if any.
    async fn usage_ledger(&self) -> Result<(String, Option<String>), Error> {
        let row = self.readers().query(include_str!("../../sql/usage_ledger.sql")).fetch_one().await?;
        let fields = Fields(&row);
        Ok((fields.value("present")?, fields.value("metered")?))
    }
}
