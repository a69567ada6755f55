//! The claim of subscribers without a home, before a lost region hands its subscribers over.

use super::stored;
use crate::{Error, Ledger};
use seatkeeper_core::Region;

/// Subscribers in a transaction of the claim: the time limit of statements holds for any number of subscribers.
const CLAIM_PAGE: i64 = 1_000;

impl Ledger {
    /// Places in `own`, the region of this ledger, every subscriber with an audit record, a deleted history, a live session or
    /// an active subscription here, and without a home. [`Ledger::assign_home`] also counts a subscription that is not active.
    ///
    /// Each page is a transaction. A repetition claims the subscribers left by a cut-off claim. No subscriber appears
    /// behind a page: no server starts on the ledger of a region with a successor on record.
    pub async fn claim_unassigned_homes(&self, own: Region) -> Result<(), Error> {
        let mut tenant = String::new();
        loop {
            let next = self.readers().query(include_str!("../../sql/next_known_tenant.sql"));
            let Some(known) = next.bind(&*tenant).scalar::<Option<String>>().await? else { return Ok(()) };
            self.claim_homes_of_tenant(&known, own).await?;
            tenant = known;
        }
    }

    async fn claim_homes_of_tenant(&self, tenant: &str, own: Region) -> Result<(), Error> {
        let mut after = String::new();
        loop {
            let page = self.readers().query(include_str!("../../sql/known_subscribers_page.sql"));
            let page = page.bind(tenant).bind(&*after).bind(CLAIM_PAGE);
            let Some(last) = page.scalar::<Option<String>>().await? else { return Ok(()) };
            let mut tx = self.write().await?;
            let now = tx.now().await?;
            let claimed = tx.query(include_str!("../../sql/claim_homes_page.sql")).bind(tenant);
            claimed.bind(&*after).bind(&*last).bind(stored(own)).bind(now).execute().await?;
            tx.commit().await?;
            after = last;
        }
    }
}
