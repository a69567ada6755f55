//! Confirmation of moves: the home on record is asked for its own record, by its own URL, before another region's word of a
//! move counts. The key of another region, stolen or misused, therefore moves no home.

use garde::Validate;
use seatkeeper_core::{Region, TenantId, UserId};
use seatkeeper_ledger::homes::{Home, HomeState};
use serde::{Deserialize, Serialize};

use super::Regions;
use crate::error::Error;
use crate::outbound::PeerFault;

/// The path at which a region tells its own record of a home.
pub(crate) const RECORD_PATH: &str = "/api/v1/regions/homes/record";

/// The question for a region's own record of a home.
#[derive(Serialize, Deserialize, Validate)]
pub(crate) struct RecordQuestion {
    #[garde(length(chars, min = 1, max = 255))]
    pub(crate) tenant: String,
    #[garde(length(chars, min = 1, max = 255))]
    pub(crate) user: String,
}

/// A region's own record of a home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HomeRecord {
    /// The home, or the target of a home on its way out of the region.
    pub(crate) region: u8,
    pub(crate) version: u64,
    /// The home is on its way out of the region.
    pub(crate) is_moving: bool,
}

/// The progress of a move, as its target asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DepartureStep {
    /// The move has not begun.
    Planned,
    /// The move is on record in the region that the home leaves, and the pool is closed there.
    Begun,
}

impl Regions {
    /// Returns the home of a subscriber, by this region as the anchor, after a region has told that the home is in region
    /// `told.0` with version `told.1`. The region on record is asked for its own record, and so is each later home, so a
    /// telling may be repeated, late, or out of order. Returns `Err(HomeNotMovable)` if the telling contradicts the record.
    pub(crate) async fn confirm_move(
        &self,
        tenant: &TenantId,
        user: &UserId,
        told: (Region, u64),
    ) -> Result<Home, Error> {
        let mut known = self.home_on_record(tenant, user).await?;
        // Each question leads to a greater version. More moves than regions come only from moves in the meantime.
        for _ in self.names() {
            if known.version >= told.1 {
                break;
            }
            match self.newer_by_home(tenant, user, known).await? {
                Some(newer) => known = self.learn(tenant, user, newer).await?,
                None => break,
            }
        }
        if known.version > told.1 || (known.version == told.1 && known.region == self.present(told.0)) {
            return Ok(known);
        }
        Err(Error::HomeNotMovable("The anchor's home on record does not confirm the move.".to_owned()))
    }

    /// Returns the home for a request that region `asked` refused with the newer home `told`. The word goes on record if
    /// `asked` is the home on record. A session id may lead to any other region: the anchor then decides about the record,
    /// and the word leads this one request.
    pub(crate) async fn follow(
        &self,
        tenant: &TenantId,
        user: &UserId,
        asked: Region,
        told: (Region, u64),
    ) -> Result<Home, Error> {
        self.homes.invalidate(tenant, user);
        let known = self.homes.known(tenant, user).await?;
        if told.0 == self.own || known.is_some_and(|home| self.present(home.region) == asked) {
            return self.learn(tenant, user, told).await;
        }
        let anchor = self.anchor_of(tenant).await?.region;
        let recorded = match anchor == self.own {
            true => self.confirm_move(tenant, user, told).await,
            false => self.learn_from_anchor(anchor, tenant, user).await,
        };
        match recorded {
            Ok(home) if home.version >= told.1 => Ok(home),
            // The anchor is stale or unreachable. No home changes by a request that is led to a wrong region.
            Ok(_) | Err(_) => Ok(Home { version: told.1, ..Home::first(told.0) }),
        }
    }

    /// Returns `Ok` if a home may leave region `from` for this region, by `version`: the anchor has the home in `from`, and
    /// the record of `from` itself has the move. So no region hands over the home of another region, and no stolen key hands
    /// over any home.
    pub(crate) async fn check_departure(
        &self,
        tenant: &TenantId,
        user: &UserId,
        from: Region,
        (step, version): (DepartureStep, u64),
    ) -> Result<(), Error> {
        let record = async {
            let record = self.ask_record(from, tenant, user).await?;
            Ok(record.is_some_and(|record| record.is_leaving_for(self.own, from, (step, version))))
        };
        let (is_at_anchor, is_confirmed) = tokio::try_join!(self.is_at_anchor(tenant, user, from), record)?;
        if is_at_anchor && is_confirmed {
            return Ok(());
        }
        let detail = match is_at_anchor {
            true => "The record of the region that hands the home over does not have the move.",
            false => "The subscriber's home is not in the region that hands the home over.",
        };
        Err(Error::HomeNotMovable(detail.to_owned()))
    }

    /// Returns whether the anchor has the home of a subscriber in region `from`.
    async fn is_at_anchor(&self, tenant: &TenantId, user: &UserId, from: Region) -> Result<bool, Error> {
        self.homes.invalidate(tenant, user);
        let known = self.homes.known(tenant, user).await?;
        let anchor = self.anchor_of(tenant).await?.region;
        match known {
            Some(home) if home.region == self.own => Ok(false),
            known if anchor == self.own => Ok(known.is_some_and(|home| self.present(home.region) == from)),
            // The record of the region itself is the anchor's.
            Some(_) | None if anchor == from => Ok(true),
            Some(_) | None => Ok(self.present(self.ask_anchor(anchor, tenant, user).await?.0) == from),
        }
    }

    /// Returns the home on record in this region, the anchor.
    async fn home_on_record(&self, tenant: &TenantId, user: &UserId) -> Result<Home, Error> {
        self.homes.invalidate(tenant, user);
        match self.homes.known(tenant, user).await? {
            Some(home) => self.settled(tenant, user, home),
            None => {
                Err(Error::HomeNotMovable("The anchor has no home of the subscriber on record.".to_owned()))
            }
        }
    }

    /// Asks the home on record for a newer home, and returns region and version. This region's own record is not newer than
    /// itself, and no other region's word makes this region the home.
    async fn newer_by_home(
        &self,
        tenant: &TenantId,
        user: &UserId,
        known: Home,
    ) -> Result<Option<(Region, u64)>, Error> {
        if known.region == self.own {
            return Ok(None);
        }
        let record = self.ask_record(known.region, tenant, user).await?;
        let settled = record.map(|record| record.settled(known.region));
        Ok(settled.filter(|(region, version)| *version > known.version && *region != self.own))
    }

    /// Asks a region for its own record of a home.
    async fn ask_record(
        &self,
        peer: Region,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Option<HomeRecord>, Error> {
        let question = RecordQuestion { tenant: tenant.as_str().to_owned(), user: user.as_str().to_owned() };
        let (status, body) = self.ask(peer, RECORD_PATH, &question).await?;
        match serde_json::from_slice(&body) {
            Ok(record) if status == 200 => Ok(record),
            Ok(_) | Err(_) => {
                Err(Error::RegionUnavailable { peer, source: PeerFault::refused(status, &body) })
            }
        }
    }
}

impl HomeRecord {
    /// Returns the record of a home.
    pub(crate) fn from_home(home: &Home) -> Self {
        let is_moving = home.state == HomeState::Moving;
        Self { region: home.region.number(), version: home.version, is_moving }
    }

    /// Returns region and version of the home, by this record of region `asked`. A home on its way out of a region is still in
    /// the region.
    fn settled(self, asked: Region) -> (Region, u64) {
        match self.is_moving {
            true => (asked, self.version.saturating_sub(1)),
            false => (Region::new(self.region), self.version),
        }
    }

    /// Returns whether this record of region `from` has the move of the home to region `own` by `version`.
    fn is_leaving_for(self, own: Region, from: Region, (step, version): (DepartureStep, u64)) -> bool {
        match step {
            DepartureStep::Planned => self.settled(from) == (from, version.saturating_sub(1)),
            DepartureStep::Begun => self == Self { region: own.number(), version, is_moving: true },
        }
    }
}

#[cfg(test)]
mod tests;
