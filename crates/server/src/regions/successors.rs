//! The successors of lost regions, as a request meets them.

use seatkeeper_core::{Region, SessionId, TenantId};
use seatkeeper_engine::Engine;
use seatkeeper_ledger::Error as LedgerError;
use seatkeeper_ledger::homes::Adoption;

use super::{Regions, check_silence};
use crate::error::Error;

impl Regions {
    /// Returns the region that serves the pools of `region`: the region itself, or the successor of a lost region.
    pub(crate) fn present(&self, region: Region) -> Region {
        self.adoptions.last_for(region).map_or(region, |adoption| adoption.successor)
    }

    /// Returns every peer that is not lost, with its name.
    pub(crate) fn living_peers(&self) -> impl Iterator<Item = (Region, &str)> {
        let peers = self.names.iter().filter(|(region, _)| *region != self.own);
        let living = peers.filter(|(region, _)| self.adoption_of(*region).is_none());
        living.map(|(region, name)| (*region, name.as_str()))
    }

    /// Returns the adoption of a lost region.
    pub(crate) fn adoption_of(&self, lost: Region) -> Option<Adoption> {
        self.adoptions.of_lost(lost)
    }

    /// Returns the lost regions whose chain of successors leads to region `lost`, without `lost`.
    pub(crate) fn adopted_by(&self, lost: Region) -> Vec<Region> {
        self.adoptions.leading_to(lost)
    }

    /// Returns whether the pools of a tenant's licenses are in region `lost`: the tenant's anchor is `lost`, or a region that
    /// `lost` had adopted.
    pub(crate) async fn was_anchor(&self, lost: Region, tenant: &TenantId) -> Result<bool, Error> {
        let anchor = self.homes.anchor_of(tenant).await?;
        Ok(anchor == lost || self.adopted_by(lost).contains(&anchor))
    }

    /// Returns the numbers of every lost region and its successor.
    pub(crate) fn adopted(&self) -> Vec<(u8, u8)> {
        let pair = |adoption: &Adoption| (adoption.lost.number(), adoption.successor.number());
        self.adoptions.known().iter().map(pair).collect()
    }

    /// Returns the adoptions on record by this region, done or not.
    pub(crate) fn adoptions_by_own(&self) -> Vec<Adoption> {
        self.adoptions.known().iter().filter(|adoption| adoption.successor == self.own).copied().collect()
    }

    /// Reads the adoptions on record now, and drops every cached home.
    pub(crate) async fn refresh_adoptions(&self) -> Result<(), LedgerError> {
        self.adoptions.refresh().await?;
        self.homes.clear();
        Ok(())
    }

    /// Returns `Err(RegionAdopting)` if this region takes over the pools of `region`, and has not all of them yet.
    pub(crate) fn check_adopted(&self, region: Region) -> Result<(), Error> {
        match self.adoptions.last_for(region) {
            Some(adoption) if adoption.successor == self.own && !adoption.is_done => {
                Err(Error::RegionAdopting { lost: region })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Returns `Err(RegionAdopting)` for a session of a lost region whose pools are not all here yet.
    pub(crate) fn check_session(&self, id: SessionId) -> Result<(), Error> {
        self.check_adopted(self.origin_of(id))
    }

    /// Returns the region in which a session began.
    pub(super) fn origin_of(&self, id: SessionId) -> Region {
        if id.region() == Region::default() { self.homes.common_anchor() } else { id.region() }
    }

    /// Returns `Err(AdoptedSilent)` while this region is the successor of `anchor`, and admits nobody yet. A subscriber
    /// without a home may have a live session in the lost region, on no record.
    pub(super) async fn check_anchor_silence(&self, anchor: Region, engine: &Engine) -> Result<(), Error> {
        let adoption = self.adoptions.last_for(anchor).filter(|adoption| adoption.successor == self.own);
        match adoption {
            Some(adoption) => check_silence(engine, adoption.admits_from).await,
            None => Ok(()),
        }
    }
}
