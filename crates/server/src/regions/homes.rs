//! The anchors of tenants and the homes of subscribers: cached in memory, and on record in the ledger. An anchor never
//! changes. A cached home may be stale: the region that is asked answers 421 with a newer home, and the ledger refuses to
//! open the pool in any other region than the home.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use quick_cache::sync::Cache;
use seatkeeper_core::{Region, TenantId, UserId};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::homes::{Home, HomeState, KnownHome};

use super::moved_homes::{Knowledge, MovedHomes};
use crate::auth::tenant_from_text;
use crate::error::Error;
use crate::ledger_breaker::LedgerBreaker;
use crate::settings::RegionSettings;

/// Capacity of the cache of homes, in subscribers of about 150 bytes each.
pub(super) const HOMES_MAX: usize = 200_000;

/// Capacity of the cache of anchors, in tenants.
const ANCHORS_MAX: usize = 10_000;

/// Age from which a cached home is read again: a node may have missed a move. Without the ledger, the cached home goes on.
const HOME_AGE_MAX: Duration = Duration::from_secs(60);

/// The consequence of a ledger without answers, for the log.
const WITHOUT_HOMES: &str =
    "the homes of subscribers that this node has read last go on, and other subscribers get 503";

/// The homes known in this region.
pub(super) struct Homes {
    ledger: Ledger,
    /// The ledger for look-ups that every request may need.
    lookups: LedgerBreaker,
    /// The anchor of every tenant without a line of its own.
    common_anchor: Region,
    anchors: HashMap<TenantId, Region>,
    fixed_anchors: Cache<TenantId, Region>,
    known: Cache<(TenantId, UserId), (Home, Instant)>,
    moved: MovedHomes,
}

impl Homes {
    pub(super) fn new(settings: &RegionSettings, ledger: Ledger) -> Self {
        let anchor = |(tenant, number): (&String, &u8)| (tenant_from_text(tenant), Region::new(*number));
        Self {
            lookups: LedgerBreaker::new(ledger.clone(), WITHOUT_HOMES),
            moved: MovedHomes::new(ledger.clone()),
            ledger,
            common_anchor: Region::new(settings.anchor.unwrap_or(settings.number)),
            anchors: settings.anchors.iter().map(anchor).collect(),
            fixed_anchors: Cache::new(ANCHORS_MAX),
            known: Cache::new(HOMES_MAX),
        }
    }

    /// Returns the anchor of every tenant without a line of its own.
    pub(super) fn common_anchor(&self) -> Region {
        self.common_anchor
    }

    /// Returns the anchor of a tenant by the settings, without a look at the record.
    pub(super) fn named_anchor(&self, tenant: &TenantId) -> Region {
        self.anchors.get(tenant).copied().unwrap_or(self.common_anchor)
    }

    /// Returns the anchor of a tenant. The first use puts the anchor on record; an anchor that differs from the record is
    /// refused, because a second anchor could assign a second home.
    pub(super) async fn anchor_of(&self, tenant: &TenantId) -> Result<Region, Error> {
        let named = self.named_anchor(tenant);
        let recorded = match self.fixed_anchors.get(tenant) {
            Some(recorded) => recorded,
            None => {
                let recorded = self.ledger.fix_anchor(tenant, named).await.map_err(Error::Ledger)?;
                self.fixed_anchors.insert(tenant.clone(), recorded);
                recorded
            }
        };
        if recorded == named {
            return Ok(named);
        }
        Err(Error::RegionSettingsDiffer { tenant: tenant.clone(), recorded, named })
    }

    /// Returns the home of a subscriber, as far as this region knows.
    pub(super) async fn known(&self, tenant: &TenantId, user: &UserId) -> Result<Option<Home>, Error> {
        let cached = self.known.get(&(tenant.clone(), user.clone()));
        if let Some((home, read)) = cached
            && read.elapsed() < HOME_AGE_MAX
        {
            return Ok(Some(home));
        }
        let (of_tenant, of_user) = (tenant.clone(), user.clone());
        let read = self.lookups.ask(async move |ledger| ledger.home(&of_tenant, &of_user).await).await;
        match (read, cached) {
            (Ok(home), _) => {
                match home {
                    Some(home) => self.remember(tenant, user, home),
                    None => self.moved.note(tenant, user, None),
                }
                Ok(home)
            }
            (Err(_), Some((home, _))) => Ok(Some(home)),
            (Err(error), None) => Err(error),
        }
    }

    /// Caches the home on record, unless the home is about to change.
    pub(super) fn remember(&self, tenant: &TenantId, user: &UserId, home: Home) {
        self.moved.note(tenant, user, Some(home));
        let subscriber = (tenant.clone(), user.clone());
        match home.state {
            HomeState::Here | HomeState::Moved => self.known.insert(subscriber, (home, Instant::now())),
            HomeState::Moving => drop(self.known.remove(&subscriber)),
        }
    }

    /// Drops the cached home of a subscriber, so that the next look reads the record: the home may have moved.
    pub(super) fn invalidate(&self, tenant: &TenantId, user: &UserId) {
        self.known.remove(&(tenant.clone(), user.clone()));
        self.moved.invalidate(tenant, user);
    }

    /// Drops every cached home.
    pub(super) fn clear(&self) {
        self.known.clear();
    }

    /// Puts a home on record, unless the subscriber has a home, and returns the home on record.
    pub(super) async fn assign(
        &self,
        tenant: &TenantId,
        user: &UserId,
        first: Region,
        own: Region,
    ) -> Result<Home, Error> {
        let home = self.ledger.assign_home(tenant, user, first, own).await.map_err(Error::Ledger)?;
        self.remember(tenant, user, home);
        Ok(home)
    }

    /// Puts a newer home in another region on record, and returns the home on record.
    pub(super) async fn learn(
        &self,
        tenant: &TenantId,
        user: &UserId,
        told: (Region, u64),
        own: Region,
    ) -> Result<Option<Home>, Error> {
        let home = self.ledger.learn_home(tenant, user, told, own).await.map_err(Error::Ledger)?;
        self.invalidate(tenant, user);
        if let Some(home) = home {
            self.remember(tenant, user, home);
        }
        Ok(home)
    }

    /// Returns `true` if no home has moved, as far as this region knows. The answer may be a second late.
    pub(super) fn has_only_first(&self) -> bool {
        self.moved.is_empty()
    }

    /// Returns `true` if the home of a subscriber has not moved, as far as this region knows. The answer may be a second late.
    pub(super) fn is_first(&self, tenant: &TenantId, user: &UserId) -> bool {
        matches!(self.moved.find(tenant, user), Knowledge::First)
    }

    /// Returns the home of a subscriber whose home has moved; `None` for a first home and for an unknown home. The
    /// ledger is read only while the home changes. The answer may be a second late.
    pub(super) async fn moved(&self, tenant: &TenantId, user: &UserId) -> Result<Option<Home>, Error> {
        match self.moved.find(tenant, user) {
            Knowledge::First => Ok(None),
            Knowledge::Moved(_) | Knowledge::Unread => self.moved_or_known(tenant, user).await,
        }
    }

    /// Returns the home of a subscriber. The ledger is read unless this node knows that the home has moved.
    pub(super) async fn moved_or_known(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Option<Home>, Error> {
        match self.moved.find(tenant, user) {
            Knowledge::Moved(home) => Ok(Some(home)),
            Knowledge::First | Knowledge::Unread => self.known(tenant, user).await,
        }
    }

    /// Reads the homes that have moved since the last read.
    pub(super) async fn refresh_moved(&self) -> Result<(), seatkeeper_ledger::Error> {
        self.moved.refresh(|known| self.drop_older(known)).await
    }

    /// Drops a cached home that is older than the home on record.
    fn drop_older(&self, recorded: &KnownHome) {
        let subscriber = (recorded.tenant.clone(), recorded.user.clone());
        if self.known.peek(&subscriber).is_some_and(|(home, _)| home.version < recorded.home.version) {
            self.known.remove(&subscriber);
        }
    }
}

#[cfg(test)]
mod tests;
