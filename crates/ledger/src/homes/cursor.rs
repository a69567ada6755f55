//! Positions in the order in which homes change.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::KnownHome;
use crate::Error;
use crate::database::{Query, Row};
use crate::row::Fields;

/// A position in the order in which homes change: by time, tenant and user. The default is before every home.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HomesCursor {
    since: DateTime<Utc>,
    tenant: String,
    user: String,
}

impl HomesCursor {
    /// The longest time from a change until the commit, unless a transaction waits for more than three locks.
    pub const COMMIT_MAX: Duration = Duration::from_secs(20);

    /// Returns a position that is earlier by `span`. A transaction gets its time before its commit, so a home may
    /// appear behind a reader's position.
    #[must_use]
    pub fn earlier_by(&self, span: Duration) -> Self {
        let since = self.since.checked_sub_signed(chrono::Duration::from_std(span).unwrap_or_default());
        Self { since: since.unwrap_or_default().max(DateTime::UNIX_EPOCH), ..Self::default() }
    }

    /// Returns the latest position, up to this position, behind which no home may appear after time `now`.
    pub(super) fn settled(&self, now: DateTime<Utc>) -> Self {
        let now = Self { since: now, ..Self::default() };
        self.clone().min(now.earlier_by(Self::COMMIT_MAX))
    }

    /// Returns this position, or the position of time `now` if that is earlier.
    pub(super) fn no_later_than(&self, now: DateTime<Utc>) -> Self {
        self.clone().min(Self { since: now, ..Self::default() })
    }

    /// Reads the position of a home.
    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        let name = |column| fields.value::<&str>(column).map(str::to_owned);
        Ok(Self { since: fields.value("since")?, tenant: name("tenant_id")?, user: name("user_id")? })
    }

    /// Reads a page of homes after the position `after`, and the position of the last of them.
    pub(super) fn read_page(rows: &[Row], after: &Self) -> Result<(Vec<KnownHome>, Self), Error> {
        let homes = rows.iter().map(KnownHome::read).collect::<Result<Vec<_>, _>>()?;
        let last = rows.last().map_or_else(|| Ok(after.clone()), Self::read)?;
        Ok((homes, last))
    }

    /// Binds time, tenant and user to the next three parameters.
    pub(super) fn bind<'c>(&self, query: Query<'c>) -> Query<'c> {
        query.bind(self.since).bind(self.tenant.as_str()).bind(self.user.as_str())
    }
}
