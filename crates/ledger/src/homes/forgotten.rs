//! Homes that a restored ledger has forgotten, as peer regions tell them.

use seatkeeper_core::{Region, TenantId, UserId};

use super::moves::{last_event, subscriber_pool};
use super::{HomesCursor, KnownHome, stored};
use crate::row::stored_whole;
use crate::{Error, Ledger, tenants, times};

/// A page of the homes in a region, in the order of their last change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomesHere {
    /// The homes.
    pub homes: Vec<KnownHome>,
    /// The position of the last home.
    pub last: HomesCursor,
    /// The latest position on the page behind which no home may appear later.
    pub settled: HomesCursor,
}

impl Ledger {
    /// Returns at most `max` homes in `own`, the region of this ledger, changed last after the position `after`.
    pub async fn homes_here_after(
        &self,
        own: Region,
        after: &HomesCursor,
        max: u32,
    ) -> Result<HomesHere, Error> {
        let mut tx = self.readers().begin_snapshot().await?;
        let now = tx.now().await?;
        let page = tx.query(include_str!("../../sql/homes_here_after.sql")).bind(stored(own));
        let rows = after.bind(page).bind(i64::from(max)).fetch_all().await?;
        let (homes, last) = HomesCursor::read_page(&rows, after)?;
        let settled = last.settled(now);
        Ok(HomesHere { homes, last, settled })
    }

    /// Returns the position up to which region `peer` has told its homes, in the order of `peer`.
    pub async fn last_learnt_home(&self, peer: Region) -> Result<HomesCursor, Error> {
        let last = self.readers().query(include_str!("../../sql/last_learnt_home.sql")).bind(stored(peer));
        let last = last.fetch_optional().await?.as_ref().map(HomesCursor::read).transpose()?;
        Ok(last.unwrap_or_default())
    }

    /// Records the position up to which region `peer` has told its homes. A position in the future, by this ledger's
    /// clock, would keep later homes from being told: the position of now goes on record in its place.
    pub async fn note_learnt_home(&self, peer: Region, position: &HomesCursor) -> Result<(), Error> {
        let mut tx = self.write().await?;
        let position = position.no_later_than(tx.now().await?);
        let noted = tx.query(include_str!("../../sql/note_learnt_home.sql")).bind(stored(peer));
        position.bind(noted).execute().await?;
        tx.commit().await
    }

    /// Begins a move that this ledger has forgotten: region `to` has the home by `version`, and this ledger has the home
    /// in `own`, the region of this ledger, by an older version. The caller carries the move to its end, as any other
    /// move. `audit verify` reads from the record that the numbers of `to` may belong to lost events. Returns whether a move
    /// has begun.
    pub async fn begin_forgotten_move(
        &self,
        tenant: &TenantId,
        user: &UserId,
        own: Region,
        (to, version): (Region, u64),
    ) -> Result<bool, Error> {
        let mut tx = self.write().await?;
        let now = tx.now().await?;
        // A write to the subscription under way ends before the move begins, so the handover has its effect.
        tenants::hold(&mut tx, tenant, times::from_stored(now)).await?;
        let seq = last_event(&mut tx, &subscriber_pool(tenant, user)).await?;
        let begun = tx.query(include_str!("../../sql/begin_forgotten_move.sql"));
        let begun = begun.bind(tenant.as_str()).bind(user.as_str()).bind(stored(to)).bind(stored(own));
        let has_begun = begun.bind(now).bind(seq).bind(stored_whole(version)).execute().await? > 0;
        if has_begun {
            let noted = tx.query(include_str!("../../sql/note_home_move.sql")).bind(tenant.as_str());
            let noted = noted.bind(user.as_str()).bind(stored_whole(version)).bind("forgotten");
            noted.bind(stored(to)).bind(seq).bind(None::<i64>).bind(now).execute().await?;
        }
        tx.commit().await?;
        Ok(has_begun)
    }
}
