//! The claim of subscribers without a home, before a lost region hands its subscribers over.

use seatkeeper_core::{Region, TenantId};

use super::stored;
use crate::row::Fields;
use crate::{Error, Ledger};

/// Subscribers in a transaction of the claim: the time limit of statements holds for any number of subscribers.
const CLAIM_PAGE: i64 = 1_000;

impl Ledger {
    /// Places in `own`, the region of this ledger, every subscriber with an audit record, a deleted history, a live session or
    /// an active subscription here, and without a home, if `own` is the anchor of the tenant: by the record, or by
    /// `named_anchor` without a record. Another region is the home of no subscriber without a row, so a record there stayed
    /// behind, or is a plan's with the name of a subscriber. [`Ledger::assign_home`] also counts a subscription that is not active.
    ///
    /// Each page is a transaction. A repetition claims the subscribers left by a cut-off claim. No subscriber appears
    /// behind a page: no server starts on the ledger of a region with a successor on record.
    pub async fn claim_unassigned_homes(
        &self,
        own: Region,
        named_anchor: impl Fn(&TenantId) -> Region,
    ) -> Result<(), Error> {
        let mut tenant = String::new();
        loop {
            let next = self.readers().query(include_str!("../../sql/next_known_tenant.sql"));
            let Some(known) = next.bind(&*tenant).scalar::<Option<String>>().await? else { return Ok(()) };
            let anchor = self.anchor_on_record(&known).await?;
            if anchor.unwrap_or_else(|| named_anchor(&TenantId::new(&*known))) == own {
                self.claim_homes_of_tenant(&known, own).await?;
            }
            tenant = known;
        }
    }

    async fn anchor_on_record(&self, tenant: &str) -> Result<Option<Region>, Error> {
        let anchor = self.readers().query(include_str!("../../sql/anchor.sql")).bind(tenant);
        let Some(row) = anchor.fetch_optional().await? else { return Ok(None) };
        Ok(Fields(&row).number_maybe::<u8>("anchor_region")?.map(Region::new))
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
