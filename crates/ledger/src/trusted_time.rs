//! Trusted time: the latest registry time that irreversible work may go by.
//!
//! Deleted history and delivered usage cannot be taken back, so a single wrong clock at the start of a server must not
//! decide about them. The ledger keeps the bound across restarts: events dated by a wrong clock never move the bound.

use chrono::{DateTime, Utc};
use seatkeeper_core::{RegistryTime, Span};

use crate::{Error, Ledger, times};

/// Longest gap between trusted time, counted on by uptime, and the clock that counts as an outage. Bounds the harm of a
/// wrong clock: history is deleted at most a day too early, and usage metered at most a day ahead.
pub const OUTAGE_MAX: Span = Span::from_secs(24 * 3_600);

impl Ledger {
    /// Returns the trusted time on record, if any.
    pub async fn trusted_time(&self) -> Result<Option<RegistryTime>, Error> {
        let at: Option<DateTime<Utc>> =
            self.readers().query(include_str!("../sql/trusted_time.sql")).scalar_optional().await?;
        Ok(at.map(times::from_stored))
    }

    /// Returns the trusted time on record. A ledger without one gets the time of the newest session event, or `now`
    /// without events.
    pub async fn trusted_time_at_start(&self, now: RegistryTime) -> Result<RegistryTime, Error> {
        if let Some(trusted) = self.trusted_time().await? {
            return Ok(trusted);
        }
        let trusted = self.newest_event().await?.unwrap_or(now);
        self.advance_trusted_time(trusted).await?;
        Ok(trusted)
    }

    /// Advances the trusted time on record to `to`. An earlier `to` changes nothing.
    pub async fn advance_trusted_time(&self, to: RegistryTime) -> Result<(), Error> {
        self.write_trusted_time(include_str!("../sql/advance_trusted_time.sql"), to).await
    }

    /// Sets the trusted time on record to `to`, by the word of an operator that `to` is the true time.
    pub async fn confirm_time(&self, to: RegistryTime) -> Result<(), Error> {
        self.write_trusted_time(include_str!("../sql/set_trusted_time.sql"), to).await
    }

    async fn write_trusted_time(&self, statement: &'static str, to: RegistryTime) -> Result<(), Error> {
        let mut tx = self.write().await?;
        tx.query(statement).bind(times::stored(to)).execute().await?;
        tx.commit().await
    }
}
