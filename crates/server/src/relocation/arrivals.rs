//! The target of a move: takes over a home with its live sessions.

use seatkeeper_core::{Origin, Region, RegistryTime, TenantId, Terms, UserId};
use seatkeeper_ledger::Error as LedgerError;
use seatkeeper_ledger::homes::{Arrival, ArrivalKind, Home};

use super::handover::{AnchorUpdate, Handover};
use super::{Mover, pool_of};
use crate::error::Error;
use crate::regions::DepartureStep;

/// The most sessions that a home takes along: the message stays small, with their longest names and user agents.
pub(super) const SESSIONS_MAX: usize = 16;

impl Mover {
    /// Returns `Ok` if the home may arrive. Nothing is written here: the move may never begin, and a
    /// subscription would stay behind in a region that is not the home.
    pub(crate) async fn check_readiness(&self, handover: Handover, from: Region) -> Result<(), Error> {
        let (tenant, user) = handover.subscriber();
        self.check_no_adoption()?;
        let step = (DepartureStep::Planned, handover.version);
        self.regions.check_departure(&tenant, &user, from, step).await?;
        if handover.sessions.len() > SESSIONS_MAX {
            return Err(not_movable("The subscriber has too many live sessions for a move."));
        }
        if self
            .ledger
            .home(&tenant, &user)
            .await
            .map_err(Error::Ledger)?
            .is_some_and(|home| home.version >= handover.version)
        {
            return Err(not_movable("The target region knows a newer home of the subscriber."));
        }
        self.check_is_new(&tenant, &user, &handover).await?;
        let now = self.engine.time_for(&pool_of(&tenant, &user)).await?;
        let offered = self.offered(&tenant, &user, handover.subscription.clone(), now).await?;
        check_limit(&offered, &handover)
    }

    /// Takes over a home: from now on this region admits for the pool. Repeating the call changes nothing, and opens the
    /// pool if a crash has prevented that.
    pub(crate) async fn arrive(&self, handover: Handover, from: Region) -> Result<Home, Error> {
        let (tenant, user) = handover.subscriber();
        let (pool, own) = (pool_of(&tenant, &user), self.regions.own());
        let known = self.ledger.home(&tenant, &user).await.map_err(Error::Ledger)?;
        let version = handover.version;
        let is_new = known.is_none_or(|home| home.version < version);
        if is_new {
            self.check_no_adoption()?;
            let step = (DepartureStep::Begun, handover.version);
            self.regions.check_departure(&tenant, &user, from, step).await?;
            self.check_is_new(&tenant, &user, &handover).await?;
            let now = self.engine.time_for(&pool).await?;
            let subscription = handover.subscription.clone();
            self.take_subscription((&tenant, &user), subscription, (version, None), now).await?;
            let terms = self.entitled_at(&tenant, &user, now).await?.terms;
            let Handover { seq, sessions, answers, .. } = handover;
            let (tenant, user) = (tenant.clone(), user.clone());
            let arrival = Arrival {
                tenant,
                user,
                version,
                from,
                peer_seq: seq,
                sessions,
                answers,
                kind: ArrivalKind::Moved,
                admits_from: self.silence(now),
            };
            let taken = self.ledger.take_home(&arrival, own, terms, now).await;
            if matches!(taken, Err(LedgerError::RegionAdopted { .. })) {
                // The adoption of `from` began after the checks. Every later message of `from` gets the same refusal.
                return Err(Error::RegionTokenRefused(None));
            }
            taken.map_err(Error::Ledger)?;
        }
        // A later move of the home may have begun here. Without an end of the earlier move, both moves would wait for ever.
        if let Some(later) = known.filter(|home| home.version > version) {
            return Ok(later);
        }
        self.regions.invalidate(&tenant, &user);
        let home = self.regions.home_of(&tenant, &user, &self.engine).await?;
        if home.admits(own) {
            // Opens the pool, so that a heartbeat of a session that goes on finds the session.
            let terms = self.entitled(&tenant, &user).await?.terms;
            self.engine.revise(&pool, terms, &Origin::SYSTEM).await?;
        }
        Ok(home)
    }

    /// Returns `Err(RegionAdopting)` while this region takes over a lost region: the lost region may have taken over the same
    /// home, so its restored ledger counts first.
    fn check_no_adoption(&self) -> Result<(), Error> {
        let adoptions = self.regions.adoptions_by_own();
        adoptions.iter().try_for_each(|adoption| self.regions.check_adopted(adoption.lost))
    }

    /// Returns the time before which an arriving home admits nobody: the home may have been on its way to a lost region that
    /// took over, and admitted sessions that are not on record.
    fn silence(&self, now: RegistryTime) -> Option<RegistryTime> {
        let adoptions = self.regions.adoptions_by_own();
        adoptions.iter().map(|adoption| adoption.admits_from).filter(|from| *from > now).max()
    }

    /// Puts a home that has moved on record in the anchor, if the home on record confirms the move, and returns the home on
    /// record. `teller` tells of the move.
    pub(crate) async fn note_moved(&self, update: AnchorUpdate, teller: Region) -> Result<Home, Error> {
        let (tenant, user) = (TenantId::new(update.tenant), UserId::new(update.user));
        self.regions.check_anchor(&tenant).await?;
        let told = (Region::new(update.region), update.version);
        let confirmed = self.regions.confirm_move(&tenant, &user, told).await;
        if let Err(Error::HomeNotMovable(detail)) = &confirmed {
            tracing::error!(
                tenant = tenant.as_str(),
                user = user.as_str(),
                teller = teller.number(),
                region = update.region,
                version = update.version,
                detail,
                "a region told of a move that the home on record does not confirm, and nothing has changed: check whether a \
                 ledger was restored from an older backup, and whether the key of the telling region is misused"
            );
        }
        confirmed
    }

    /// Returns `Ok` if no trace of the home is left here from an earlier time: an open pool could admit by an older
    /// home, and a session that returns would end for a second time.
    async fn check_is_new(&self, tenant: &TenantId, user: &UserId, handover: &Handover) -> Result<(), Error> {
        if self.engine.view_here(&pool_of(tenant, user), 0).await?.is_some() {
            return Err(not_movable("The home left the target region a moment ago: try again in a minute."));
        }
        for (session, _) in &handover.sessions {
            if self.ledger.find_session(session.id).await.map_err(Error::Ledger)?.is_some() {
                return Err(not_movable("A live session of the subscriber began in the target region."));
            }
        }
        Ok(())
    }
}

/// Returns `Ok` if the terms have room for the limit and the sessions of a home that arrives.
fn check_limit(terms: &Terms, handover: &Handover) -> Result<(), Error> {
    let wanted = handover.limit.max(u32::try_from(handover.sessions.len()).unwrap_or(u32::MAX));
    if terms.limit.0 < wanted {
        return Err(not_movable("The subscriber's plan has a smaller limit in the target region."));
    }
    Ok(())
}

pub(super) fn not_movable(detail: &str) -> Error {
    Error::HomeNotMovable(detail.to_owned())
}
