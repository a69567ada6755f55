//! The home of a subscriber, a license or a session: from the cache, the record, or the tenant's anchor.

use seatkeeper_core::{Region, SessionId, TenantId, UserId};
use seatkeeper_engine::Engine;
use seatkeeper_ledger::Error as LedgerError;
use seatkeeper_ledger::homes::{Home, HomeState};
use serde::Serialize;

use super::requests::problem_type;
use super::{HOMES_PATH, HomeAnswer, Regions};
use crate::error::Error;
use crate::outbound::PeerFault;

/// The type of the problem of a pool that is being adopted.
const REGION_ADOPTING_TYPE: &str = "/problems/region-adopting";

/// The question for the home of a subscriber.
#[derive(Serialize)]
struct HomeQuestion<'a> {
    tenant: &'a str,
    user: &'a str,
}

impl Regions {
    /// Returns the home of a tenant's licenses: the anchor on record, or the successor of a lost anchor. Returns
    /// `Err(RegionSettingsDiffer)` if the settings name another anchor.
    pub(crate) async fn anchor_of(&self, tenant: &TenantId) -> Result<Home, Error> {
        let anchor = self.homes.anchor_of(tenant).await?;
        self.check_adopted(anchor)?;
        if self.present(anchor) == self.own {
            self.check_confirmed().await?;
        }
        let own = self.adoptions.last_for(anchor).filter(|adoption| adoption.successor == self.own);
        let admits_from = own.map(|adoption| adoption.admits_from);
        Ok(Home { admits_from, ..Home::first(self.present(anchor)) })
    }

    /// Returns the anchor of a tenant by the settings, without a record, or the successor of a lost anchor.
    pub(crate) fn named_anchor(&self, tenant: &TenantId) -> Result<Region, Error> {
        let anchor = self.homes.named_anchor(tenant);
        self.check_adopted(anchor)?;
        Ok(self.present(anchor))
    }

    /// Returns the anchor of a tenant by the settings alone.
    pub(crate) fn named_anchor_of(&self, tenant: &TenantId) -> Region {
        self.homes.named_anchor(tenant)
    }

    /// Returns `Err(RegionSettingsDiffer)` unless this region is the anchor of the tenant.
    pub(crate) async fn check_anchor(&self, tenant: &TenantId) -> Result<(), Error> {
        let anchor = self.anchor_of(tenant).await?.region;
        if anchor == self.own {
            return Ok(());
        }
        Err(Error::RegionSettingsDiffer { tenant: tenant.clone(), recorded: anchor, named: self.own })
    }

    /// Returns the home of a session, by the region in the id. `None` for the id of an unknown region. A session from
    /// before the deployment had regions is at home in the anchor. A session of a lost region is at home in the successor.
    pub(crate) fn home_of_session(&self, id: SessionId) -> Option<Region> {
        let region = self.present(self.origin_of(id));
        (region == self.own || self.peers.has(region)).then_some(region)
    }

    /// Returns `true` if a session began in this region, and this region is not lost.
    pub(crate) fn is_origin_of(&self, id: SessionId) -> bool {
        let region = self.origin_of(id);
        region == self.own && self.present(region) == region
    }

    /// Returns `true` if every subscriber at home here is at home in the region of the ids of the subscriber's sessions: no
    /// home has moved, and this node admits nobody in place of a home. The answer may be a second late.
    pub(crate) fn has_only_first_homes(&self) -> bool {
        !self.admits_without_home() && self.homes.has_only_first()
    }

    /// Returns `true` if the home of a subscriber has never moved, as far as this node knows, and this node admits nobody in place
    /// of a home. The answer may be a second late.
    pub(crate) fn is_first_home(&self, tenant: &TenantId, user: &UserId) -> bool {
        !self.admits_without_home() && self.homes.is_first(tenant, user)
    }

    /// Reads the homes that have moved from the record.
    pub(crate) async fn refresh_moved_homes(&self) -> Result<(), LedgerError> {
        self.homes.refresh_moved().await
    }

    /// Returns the home of a device's session, by the session's id and by the home of the subscriber who asks. A home
    /// that has moved keeps the ids of its sessions, so the subscriber's home counts if it has ever moved. The ledger
    /// is read only while the home changes, and by a successor for sessions of the lost region whose subscriber has no
    /// moved home.
    pub(crate) async fn home_of_held(
        &self,
        tenant: &TenantId,
        user: &UserId,
        id: SessionId,
    ) -> Result<Option<Home>, Error> {
        let Some(by_id) = self.home_of_session(id) else { return Ok(None) };
        // The end of an adoption may come to this node before the homes that the adoption has learnt.
        let home = match by_id == self.own && self.origin_of(id) != self.own {
            true => self.homes.moved_or_known(tenant, user).await,
            false => self.homes.moved(tenant, user).await,
        };
        // If the ledger is unreachable, the id decides: the pool stays closed in any other region than the home.
        let home = home.unwrap_or_default();
        match home.filter(|home| !home.is_first() || self.present(home.region) != home.region) {
            Some(home) => self.settled(tenant, user, home).map(Some),
            None => self.check_session(id).map(|()| Some(Home::first(by_id))),
        }
    }

    /// Returns the home of a subscriber. A subscriber without a home gets this region, if the anchor agrees. The `engine`
    /// has the registry's time, for the silence after an adoption.
    pub(crate) async fn home_of(
        &self,
        tenant: &TenantId,
        user: &UserId,
        engine: &Engine,
    ) -> Result<Home, Error> {
        // The anchor is checked before the cache, so a region whose anchor contradicts the record admits nobody.
        let anchor = self.homes.anchor_of(tenant).await?;
        if let Some(home) = self.homes.known(tenant, user).await? {
            return self.settled(tenant, user, home);
        }
        self.check_adopted(anchor)?;
        let recorded = anchor;
        let anchor = self.present(recorded);
        if anchor == self.own {
            self.check_undisputed().await?;
            self.check_anchor_silence(recorded, engine).await?;
            return self.homes.assign(tenant, user, self.own, self.own).await;
        }
        self.learn_from_anchor(anchor, tenant, user).await
    }

    /// Puts the anchor's home of a subscriber on record, and returns the home on record.
    pub(super) async fn learn_from_anchor(
        &self,
        anchor: Region,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Home, Error> {
        match self.ask_anchor(anchor, tenant, user).await? {
            (first, Home::FIRST_VERSION) => {
                // A home in a lost region comes to its successor by the adoption alone, with the silence.
                self.settled(tenant, user, Home::first(first))?;
                // The first home is kept, unless a move has replaced it meanwhile.
                let home = self.homes.assign(tenant, user, first, first).await?;
                self.settled(tenant, user, home)
            }
            told => self.learn(tenant, user, told).await,
        }
    }

    /// Takes over a newer home of a subscriber from the anchor or from the home on record, and returns the home on record.
    /// Another region's word never makes this region the home: only a move or the anchor's first assignment does.
    pub(super) async fn learn(
        &self,
        tenant: &TenantId,
        user: &UserId,
        told: (Region, u64),
    ) -> Result<Home, Error> {
        let home = match told.0 == self.own {
            true => {
                self.homes.invalidate(tenant, user);
                self.homes.known(tenant, user).await?
            }
            false => self.homes.learn(tenant, user, told, self.own).await?,
        };
        let home = home.filter(|home| home.region != self.own || home.version >= told.1);
        self.settled(tenant, user, home.ok_or_else(|| moving(tenant, user))?)
    }

    /// Drops the cached home of a subscriber, so that the next look reads the record: the home may have moved.
    pub(crate) fn invalidate(&self, tenant: &TenantId, user: &UserId) {
        self.homes.invalidate(tenant, user);
    }

    /// Returns the home of a subscriber on record in this region, the anchor. A subscriber without a home gets `asker`. A
    /// home in a lost region is told as such: its successor must not take the anchor's word for a first home of its own.
    pub(crate) async fn assign_home(
        &self,
        tenant: &TenantId,
        user: &UserId,
        asker: Region,
        engine: &Engine,
    ) -> Result<Home, Error> {
        self.check_anchor(tenant).await?;
        if let Some(home) = self.homes.known(tenant, user).await? {
            self.settled(tenant, user, home)?;
            return Ok(home);
        }
        self.check_undisputed().await?;
        self.check_anchor_silence(self.homes.anchor_of(tenant).await?, engine).await?;
        self.homes.assign(tenant, user, asker, self.own).await
    }

    /// Asks the anchor for the home of a subscriber, and returns region and version. Returns `Err(RegionAdopting)` while the
    /// successor of a lost anchor assigns no homes.
    pub(super) async fn ask_anchor(
        &self,
        anchor: Region,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<(Region, u64), Error> {
        let _waiting = self.wait_for(anchor)?;
        let question = HomeQuestion { tenant: tenant.as_str(), user: user.as_str() };
        let (status, body) = self.ask(anchor, HOMES_PATH, &question).await?;
        match serde_json::from_slice(&body) {
            Ok(HomeAnswer { region: region @ 1.., version }) if status == 200 => {
                Ok((Region::new(region), version))
            }
            Ok(_) | Err(_) => {
                if status == 503 && problem_type(&body).is_some_and(|kind| kind == REGION_ADOPTING_TYPE) {
                    return Err(Error::RegionAdopting { lost: self.homes.anchor_of(tenant).await? });
                }
                Err(Error::RegionUnavailable { peer: anchor, source: PeerFault::refused(status, &body) })
            }
        }
    }

    /// Returns a home, unless the home is moving. The home of a lost region is in the successor, once the
    /// successor has the home on record.
    pub(super) fn settled(&self, tenant: &TenantId, user: &UserId, home: Home) -> Result<Home, Error> {
        let region = self.present(home.region);
        match home.state {
            HomeState::Moving => Err(moving(tenant, user)),
            HomeState::Here | HomeState::Moved if region == self.own && region != home.region => {
                self.homes.invalidate(tenant, user);
                Err(Error::RegionAdopting { lost: home.region })
            }
            HomeState::Here | HomeState::Moved => Ok(Home { region, ..home }),
        }
    }
}

fn moving(tenant: &TenantId, user: &UserId) -> Error {
    Error::HomeMoving { tenant: tenant.clone(), user: user.clone() }
}
