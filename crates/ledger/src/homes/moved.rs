//! The homes that have moved at least once, in the order of their last change.

use super::{HomesCursor, KnownHome};
use crate::{Error, Ledger};

impl Ledger {
    /// Returns at most `max` homes that have moved, or are about to leave this region, changed last after the position
    /// `after`, and the position of the last of them.
    pub async fn moved_homes_after(
        &self,
        after: &HomesCursor,
        max: u32,
    ) -> Result<(Vec<KnownHome>, HomesCursor), Error> {
        let page = self.readers().query(include_str!("../../sql/moved_homes_after.sql"));
        let rows = after.bind(page).bind(i64::from(max)).fetch_all().await?;
        HomesCursor::read_page(&rows, after)
    }
}
