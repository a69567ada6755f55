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
    /// Returns `true` for a copy of the ledger: the sink may know windows lost by the copy, so no window is added.
    pub async fn is_usage_held(&self) -> Result<bool, Error> {
        Ok(self.usage_ledger().await?.is_held())
    }

    /// Records an operator's word that the sink knows no window beyond the last window of this ledger.
    pub async fn confirm_usage(&self) -> Result<(), Error> {
        let mut tx = self.write().await?;
        tx.query(include_str!("../../sql/confirm_usage_ledger.sql")).execute().await?;
        tx.commit().await
    }

    /// Returns `Err(UsageHeld)` in a copy of the ledger. The first emission ever notes the ledger.
    pub(super) async fn refuse_in_copy(&self, run: &Fence) -> Result<(), Error> {
        let ledger = self.usage_ledger().await?;
        if ledger.is_held() {
            return Err(Error::UsageHeld);
        }
        if ledger.metered.is_none() {
            let mut tx = self.write().await?;
            fence::hold(&mut tx, run).await?;
            tx.query(include_str!("../../sql/note_usage_ledger.sql")).execute().await?;
            tx.commit().await?;
        }
        Ok(())
    }

    async fn usage_ledger(&self) -> Result<UsageLedger, Error> {
        let row = self.readers().query(include_str!("../../sql/usage_ledger.sql")).fetch_one().await?;
        let fields = Fields(&row);
        Ok(UsageLedger {
            present: fields.value("present")?,
            metered: fields.value("metered")?,
            is_copy: fields.value("is_copy")?,
        })
    }
}

/// The ledger, and the ledger with the windows known to the sink.
struct UsageLedger {
    /// Identity of this ledger.
    present: String,
    /// Identity of the ledger with the windows known to the sink. `None`: no window is on record. A copy may have lost the
    /// first windows.
    metered: Option<String>,
    /// This ledger is a copy.
    is_copy: bool,
}

impl UsageLedger {
    fn is_held(&self) -> bool {
        self.metered.as_ref().map_or(self.is_copy, |metered| *metered != self.present)
    }
}
