//! The anchors of tenants and the homes of subscribers: cached in memory, and on record in the ledger. Anchors and homes
//! never change, so a cache entry is never stale.

use std::collections::HashMap;

use quick_cache::sync::Cache;
use seatkeeper_core::{Region, TenantId, UserId};
use seatkeeper_ledger::Ledger;

use crate::auth::tenant_from_text;
use crate::error::Error;
use crate::settings::RegionSettings;

/// Capacity of the cache of homes, in subscribers of about 150 bytes each.
const HOMES_MAX: usize = 200_000;

/// Capacity of the cache of anchors, in tenants.
const ANCHORS_MAX: usize = 10_000;

/// The homes known in this region.
pub(super) struct Homes {
    ledger: Ledger,
    /// The anchor of every tenant without a line of its own.
    common_anchor: Region,
    anchors: HashMap<TenantId, Region>,
    fixed_anchors: Cache<TenantId, Region>,
    known: Cache<(TenantId, UserId), Region>,
}

impl Homes {
    pub(super) fn new(settings: &RegionSettings, ledger: Ledger) -> Self {
        let anchor = |(tenant, number): (&String, &u8)| (tenant_from_text(tenant), Region::new(*number));
        Self {
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
    pub(super) async fn known(&self, tenant: &TenantId, user: &UserId) -> Result<Option<Region>, Error> {
        let subscriber = (tenant.clone(), user.clone());
        if let Some(home) = self.known.get(&subscriber) {
            return Ok(Some(home));
        }
        let home = self.ledger.home(tenant, user).await.map_err(Error::Ledger)?;
        if let Some(home) = home {
            self.known.insert(subscriber, home);
        }
        Ok(home)
    }

    /// Puts a home on record, unless the subscriber has a home, and returns the home on record.
    pub(super) async fn assign(
        &self,
        tenant: &TenantId,
        user: &UserId,
        first: Region,
        own: Region,
    ) -> Result<Region, Error> {
        let home = self.ledger.assign_home(tenant, user, first, own).await.map_err(Error::Ledger)?;
        self.known.insert((tenant.clone(), user.clone()), home);
        Ok(home)
    }
}
