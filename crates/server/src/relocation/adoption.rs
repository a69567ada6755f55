//! The successor of a lost region: takes over the pools by the records of the lost region's restored ledger. The other
//! regions record the successor alone. Every step may be repeated.

use std::time::{Duration, Instant};

use seatkeeper_core::{Origin, Region, RegistryTime, Span, TenantId, UserId};
use seatkeeper_ledger::Error as LedgerError;
use seatkeeper_ledger::homes::{Adoption, Arrival, ArrivalKind, Home, KnownHome};

use super::adoption_messages::{
    AdoptedLicense, BeginAdoption, BegunAdoption, EndAdoption, EndedAdoption, HomesPage, HomesQuestion,
    KnownHomes, RemainingHome, ToldHome,
};
use super::handover::Handover;
use super::{Mover, pool_of};
use crate::entitlements::Changed;
use crate::error::Error;

/// The most homes of a page. The longest names fit in a message, and the successor takes over every home of a page, in a
/// transaction each, within the time of an answer.
const HOMES_MAX: u32 = 100;

/// The silence beyond the longest TTL: the clocks of the lost region and of this region may differ.
const CLOCK_MARGIN: Span = Span::from_secs(5);

/// The longest time for which a message waits for the end of an adoption.
const END_WAIT_MAX: Duration = Duration::from_secs(30);

impl Mover {
    /// Records the successor of region `lost`, unless only a check is asked for. Returns `Err(RegionNotAdoptable)` if the
    /// lost region answers, or has another successor. The silence of the successor counts from the last begin before the
    /// end: after a begin that halted, the lost region may have answered and admitted again.
    pub(crate) async fn begin_adoption(
        &self,
        lost: Region,
        ask: &BeginAdoption,
    ) -> Result<BegunAdoption, Error> {
        let (own, successor) = (self.regions.own(), Region::new(ask.successor));
        if successor == lost || !self.regions.names().iter().any(|(region, _)| *region == successor) {
            return Err(not_adoptable("The successor must be another region of the settings."));
        }
        self.regions.refresh_adoptions().await.map_err(Error::Ledger)?;
        if self.regions.adoption_of(successor).is_some() {
            return Err(not_adoptable("The successor is lost itself, and adopted by another region."));
        }
        let known = self.regions.adoption_of(lost);
        let is_settled = |known: &&Adoption| known.is_done || known.successor != successor;
        if let Some(known) = known.as_ref().filter(is_settled) {
            return self.begun(known, successor).await;
        }
        if self.regions.is_alive(lost).await {
            return Err(not_adoptable("The region still answers: stop all its servers first."));
        }
        if ask.only_check {
            return self.begin_answer(false).await;
        }
        let now = self.engine.now().await?;
        let ttl = self.longest_ttl().await?.max(Span::from_millis(ask.ttl_milliseconds));
        let admits_from = self.silent_until(lost).await?.max(now + ttl + CLOCK_MARGIN);
        let noted = self.ledger.note_adoption((lost, successor), admits_from, own).await;
        self.regions.refresh_adoptions().await.map_err(Error::Ledger)?;
        match noted.map_err(Error::Ledger)? {
            Some(noted) => self.begun(&noted, successor).await,
            None => Err(not_adoptable("The adoption is not on record.")),
        }
    }

    /// Returns a page of the homes known here. The successor of `lost` must be on record, so that no home comes to `lost`
    /// after the page.
    pub(crate) async fn homes_page(&self, lost: Region, ask: HomesQuestion) -> Result<HomesPage, Error> {
        if self.regions.adoption_of(lost).is_none() {
            // Another node may have recorded the begin.
            self.regions.refresh_adoptions().await.map_err(Error::Ledger)?;
        }
        if self.regions.adoption_of(lost).is_none() {
            return Err(not_adoptable("The adoption has not begun in this region."));
        }
        let after = (TenantId::new(ask.after_tenant), UserId::new(ask.after_user));
        let homes = self.ledger.homes_after((&after.0, &after.1), HOMES_MAX).await.map_err(Error::Ledger)?;
        Ok(HomesPage { homes: homes.iter().map(ToldHome::from).collect() })
    }

    /// Records the homes that another region knows.
    pub(crate) async fn learn_homes(&self, lost: Region, told: KnownHomes) -> Result<(), Error> {
        self.adopting(lost).await?;
        let homes: Vec<_> = told.homes.into_iter().map(KnownHome::from).collect();
        let (teller, own) = (Region::new(told.teller), self.regions.own());
        self.ledger.learn_homes(&homes, (lost, teller), own).await.map_err(Error::Ledger)
    }

    /// Takes over a subscriber, unless the home is here already, or has moved to another region since the backup.
    pub(crate) async fn adopt_home(&self, lost: Region, handover: Handover) -> Result<(), Error> {
        self.adopting(lost).await?;
        let (tenant, user) = handover.subscriber();
        let known = self.ledger.home(&tenant, &user).await.map_err(Error::Ledger)?;
        let pool = pool_of(&tenant, &user);
        let has_sessions = !handover.sessions.is_empty();
        let Some(version) = self.version_after(known, handover.version) else {
            if has_sessions && known.is_some_and(|home| home.admits(self.regions.own())) {
                // A run that was cut off has not opened the pool.
                let terms = self.entitled(&tenant, &user).await?.terms;
                self.engine.revise(&pool, terms, &Origin::SYSTEM).await?;
            }
            return Ok(());
        };
        if self.engine.view_here(&pool, 0).await?.is_some() {
            return Err(not_adoptable("A home left the successor a moment ago: try again in a minute."));
        }
        let now = self.engine.time_for(&pool).await?;
        let Handover { seq, sessions, subscription, answers, .. } = handover;
        self.take_subscription((&tenant, &user), subscription, (version, Some(lost)), now).await?;
        let terms = self.entitled_at(&tenant, &user, now).await?.terms;
        let arrival = Arrival {
            tenant: tenant.clone(),
            user: user.clone(),
            version,
            from: lost,
            peer_seq: seq,
            sessions,
            answers,
            kind: ArrivalKind::Adopted,
            admits_from: None,
        };
        self.ledger.take_home(&arrival, self.regions.own(), terms, now).await.map_err(Error::Ledger)?;
        self.regions.invalidate(&tenant, &user);
        if has_sessions {
            // Opens the pool, so that a heartbeat of a session that goes on finds the session.
            self.engine.revise(&pool, terms, &Origin::SYSTEM).await?;
        }
        Ok(())
    }

    /// Takes over homes that are in the lost region by this region's record, without sessions. Other homes stay unchanged.
    pub(crate) async fn adopt_remaining(&self, lost: Region, homes: Vec<RemainingHome>) -> Result<(), Error> {
        self.adopting(lost).await?;
        for RemainingHome { tenant, user, seq } in homes {
            let (tenant, user) = (TenantId::new(tenant), UserId::new(user));
            let known = self.ledger.home(&tenant, &user).await.map_err(Error::Ledger)?;
            let Some(known) = known.filter(|home| home.region == lost) else { continue };
            let now = self.engine.time_for(&pool_of(&tenant, &user)).await?;
            let terms = self.entitled_at(&tenant, &user, now).await?.terms;
            let arrival = Arrival {
                tenant: tenant.clone(),
                user: user.clone(),
                version: known.version.saturating_add(1),
                from: lost,
                peer_seq: seq,
                sessions: Vec::new(),
                answers: Vec::new(),
                kind: ArrivalKind::Adopted,
                admits_from: None,
            };
            self.ledger.take_home(&arrival, self.regions.own(), terms, now).await.map_err(Error::Ledger)?;
            self.regions.invalidate(&tenant, &user);
        }
        Ok(())
    }

    /// Takes over a license, unless the license is here already.
    pub(crate) async fn adopt_license(&self, lost: Region, adopted: AdoptedLicense) -> Result<(), Error> {
        self.adopting(lost).await?;
        let now = self.engine.now().await?;
        let license = adopted.license.into_license(now);
        self.check_anchor_lost(lost, &license.tenant).await?;
        let license = self.ledger.adopt_license(license, &adopted.answers, now).await;
        if matches!(license, Err(LedgerError::DuplicateKey)) {
            return Err(not_adoptable("The successor has another license with the same key."));
        }
        let license = license.map_err(Error::Ledger)?;
        self.entitlements.changed(Changed::License(license.tenant, license.id)).await;
        Ok(())
    }

    /// Returns `Err(RegionNotAdoptable)` unless the licenses of the tenant were in region `lost`.
    pub(super) async fn check_anchor_lost(&self, lost: Region, tenant: &TenantId) -> Result<(), Error> {
        if self.regions.was_anchor(lost, tenant).await? {
            return Ok(());
        }
        Err(not_adoptable("The tenant's anchor is another region than the lost region."))
    }

    /// Ends the adoption: from then on this region serves every pool of the lost region. The end takes a transaction for each
    /// page of homes. Returns whether the adoption is done: if not, the message must be repeated.
    pub(crate) async fn end_adoption(&self, lost: Region, ask: &EndAdoption) -> Result<EndedAdoption, Error> {
        let adoption = self.adopting(lost).await?;
        let (earlier, own) = (self.regions.adopted_by(lost), self.regions.own());
        let until = Instant::now() + Duration::from_millis(ask.wait_milliseconds).min(END_WAIT_MAX);
        while !self.ledger.end_adoption_page(&adoption, &earlier, own).await.map_err(Error::Ledger)? {
            if Instant::now() >= until {
                return Ok(EndedAdoption { is_done: false });
            }
        }
        self.regions.refresh_adoptions().await.map_err(Error::Ledger)?;
        tracing::warn!(
            region = lost.number(),
            "a lost region is adopted: this region serves its pools, and admits new sessions there after the longest TTL"
        );
        Ok(EndedAdoption { is_done: true })
    }

    /// Returns the adoption of a lost region by this region, while the adoption is under way.
    pub(super) async fn adopting(&self, lost: Region) -> Result<Adoption, Error> {
        // Another node may have recorded a begin, or a later begin.
        let adoptions = self.ledger.adoptions().await.map_err(Error::Ledger)?;
        let own = |adoption: &Adoption| adoption.lost == lost && adoption.successor == self.regions.own();
        match adoptions.into_iter().find(own) {
            Some(adoption) if !adoption.is_done => Ok(adoption),
            Some(_) => Err(not_adoptable("The adoption is done.")),
            None => Err(not_adoptable("The adoption has not begun in this region.")),
        }
    }

    /// Returns the version of an adopted home; `None` if the home is here, or in a third region by a later move.
    fn version_after(&self, known: Option<Home>, version: u64) -> Option<u64> {
        let Some(known) = known else { return Some(version) };
        let is_in_third = self.regions.present(known.region) != self.regions.own();
        if known.region == self.regions.own() || (is_in_third && known.version >= version) {
            return None;
        }
        Some(version.max(known.version.saturating_add(1)))
    }

    /// Returns the answer to the start of an adoption on record. Returns `Err(RegionNotAdoptable)` for another successor.
    async fn begun(&self, known: &Adoption, wanted: Region) -> Result<BegunAdoption, Error> {
        if known.successor == wanted {
            return self.begin_answer(known.is_done).await;
        }
        Err(Error::RegionNotAdoptable(format!("Region {} has adopted the region.", known.successor)))
    }

    async fn begin_answer(&self, is_done: bool) -> Result<BegunAdoption, Error> {
        let ttl_milliseconds = self.longest_ttl().await?.as_millis();
        Ok(BegunAdoption { is_done, adopted: self.regions.adopted(), ttl_milliseconds })
    }

    /// Returns the longest TTL that this region has given, or gives by its settings.
    async fn longest_ttl(&self) -> Result<Span, Error> {
        let recorded = self.ledger.longest_ttl().await.map_err(Error::Ledger)?;
        Ok(recorded.max(self.ttl_default).max(self.license_ttl_default))
    }

    /// Returns the end of the silence of the regions that region `lost` has adopted, or was adopting when it was lost.
    async fn silent_until(&self, lost: Region) -> Result<RegistryTime, Error> {
        let adoptions = self.ledger.adoptions().await.map_err(Error::Ledger)?;
        let earlier = adoptions.iter().filter(|adoption| adoption.successor == lost);
        Ok(earlier.map(|adoption| adoption.admits_from).max().unwrap_or_default())
    }
}

fn not_adoptable(detail: &str) -> Error {
    Error::RegionNotAdoptable(detail.to_owned())
}
