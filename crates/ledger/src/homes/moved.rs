//! The homes that have moved at least once, in the order of their last change.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::KnownHome;
use crate::row::Fields;
use crate::{Error, Ledger};

/// A position in the order of the homes that have moved. The default is before every home.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct MovedHomesCursor {
    since: DateTime<Utc>,
    tenant: String,
    user: String,
}

impl MovedHomesCursor {
    /// Returns a position that is earlier by `span`. A transaction gets its time before its commit, so a home may
    /// appear behind a reader's position.
    #[must_use]
    pub fn earlier_by(&self, span: Duration) -> Self {
        let since = self.since.checked_sub_signed(chrono::Duration::from_std(span).unwrap_or_default());
        Self { since: since.unwrap_or_default().max(DateTime::UNIX_EPOCH), ..Self::default() }
    }
}

impl Ledger {
    /// Returns at most `max` homes that have moved, or are about to leave this region, changed last after the position
    /// `after`, and the position of the last of them.
    pub async fn moved_homes_after(
        &self,
        after: &MovedHomesCursor,
        max: u32,
    ) -> Result<(Vec<KnownHome>, MovedHomesCursor), Error> {
        let page = self.readers().query(include_str!("../../sql/moved_homes_after.sql"));
        let page = page.bind(after.since).bind(after.tenant.as_str()).bind(after.user.as_str());
        let rows = page.bind(i64::from(max)).fetch_all().await?;
        let homes = rows.iter().map(KnownHome::read).collect::<Result<Vec<_>, _>>()?;
        let Some((row, last)) = rows.last().zip(homes.last()) else { return Ok((homes, after.clone())) };
        let cursor = MovedHomesCursor {
            since: Fields(row).value("since")?,
            tenant: last.tenant.as_str().to_owned(),
            user: last.user.as_str().to_owned(),
        };
        Ok((homes, cursor))
    }
}
