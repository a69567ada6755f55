//! Usage that no sink has.

use crate::{Error, Ledger, times};

/// The usage of a ledger that no sink has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnbilledUsage {
    /// The capacity sessions with a part of their life after the last window.
    pub sessions: u64,
    /// The batches pending delivery, and the batches refused by the sink.
    pub batches: u64,
}

impl UnbilledUsage {
    /// Returns `true` if a sink has all usage.
    pub fn is_none(self) -> bool {
        self == Self::default()
    }
}

impl Ledger {
    /// Returns the usage that no sink has. A ledger without metered usage has none.
    pub async fn unbilled_usage(&self) -> Result<UnbilledUsage, Error> {
        let Some(metered_until) = self.metered_bound().await? else { return Ok(UnbilledUsage::default()) };
        let sessions: i64 = self
            .readers()
            .query(include_str!("../../sql/unmetered_sessions.sql"))
            .bind(times::stored(metered_until))
            .scalar()
            .await?;
        let batches = self.usage_outbox_depth().await? + self.dead_usage_batches().await?;
        Ok(UnbilledUsage { sessions: sessions.unsigned_abs(), batches })
    }
}
