//! Homes of subscribers' pools: a pool opens only in its home region, and a home that moves closes its pool first.

use std::future::ready;
use std::time::Instant;

use seatkeeper_core::{
    Authority, Denial, EndReason, Origin, PoolId, PoolKind, Reach, Region, Seats, Session, SessionId,
    Standing, Terms, UserId,
};
use seatkeeper_ledger::homes::Home;
use seatkeeper_registry::{Answer, Claimed, Error as RegistryError, PoolView};

use super::{Engine, OPENINGS_PER_CALL_MAX};
use crate::error::Error;

/// The version of the terms of a pool that is closed for a move: above every version of an entitlement, and exact as a
/// 64-bit float, because Redis scripts compare versions as floats. An entitlement cached by another node therefore never
/// reopens the pool.
const CLOSED_VERSION: u64 = 1 << 52;

/// Sessions of a closed pool that are looked at: more than a home has that moves.
const SESSIONS_LOOKED_AT: usize = 100;

/// The most attempts to close a pool in one call. An attempt fails only if the registry is rebuilt meanwhile.
const CLOSINGS_MAX: usize = 5;

impl Engine {
    /// Closes a subscriber's pool for a move of its home, and ends every session as `moved`. When the call returns, the
    /// pool is empty, admits nobody until it is reopened, and every event is in the ledger.
    ///
    /// A session for which `cannot_move` returns `true` ends as `revoked` instead.
    ///
    /// The limit 0 comes first, so that no session begins after the end of the others. The registry may lose the limit
    /// in a rebuild; the view at the end, one atomic step, proves limit and emptiness together. A pool that is rebuilt
    /// or reopened later opens by the ledger, where the home is on its way.
    ///
    /// No step begins after `until`: a carrier that was paused for longer may find a home that has come back meanwhile.
    pub async fn close_for_move(
        &self,
        pool: &PoolId,
        terms: Terms,
        until: Instant,
        cannot_move: impl Fn(&Session) -> bool,
    ) -> Result<(), Error> {
        let terms = Terms { version: CLOSED_VERSION, limit: Seats(0), standing: Standing::Open, ..terms };
        let check = || if Instant::now() < until { Ok(()) } else { Err(Error::NotClosed) };
        for _ in 0..CLOSINGS_MAX {
            check()?;
            self.limit_closed_pool(pool, terms).await?;
            self.check_sees_all(pool)?;
            let backend = self.backend(pool.kind, pool.bucket())?;
            check()?;
            self.revoke_where(pool, &cannot_move, check).await?;
            check()?;
            match backend.registry.end_all(pool, EndReason::Moved, &Origin::SYSTEM).await {
                Ok(_) | Err(RegistryError::PoolNotOpen) => {}
                Err(error) => return Err(error.into()),
            }
            // The receipt is older than the view: after a rebuild, which may have lost the ends, either the view shows the
            // sessions or the receipt's epoch is over.
            let ends = backend.registry.journal_end(pool.bucket()).await?;
            match backend.registry.view(pool, 0).await {
                Ok(PoolView { live: 0, terms: Some(Terms { version: CLOSED_VERSION, .. }), .. }) => {
                    return self.durable(backend, ends).await;
                }
                Ok(_) | Err(RegistryError::PoolNotOpen) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::NotClosed)
    }

    /// Revokes the sessions of a closed pool for which `chosen` returns `true`, while `check` allows further steps.
    async fn revoke_where(
        &self,
        pool: &PoolId,
        chosen: impl Fn(&Session) -> bool,
        check: impl Fn() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let backend = self.backend(pool.kind, pool.bucket())?;
        let view = match backend.registry.view(pool, SESSIONS_LOOKED_AT).await {
            Ok(view) => view,
            Err(RegistryError::PoolNotOpen) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let who = Authority::new(pool.tenant.clone(), Reach::Tenant).through(pool.kind);
        for live in view.sessions.iter().filter(|live| chosen(&live.session)) {
            check()?;
            backend.registry.end(live.session.id, &who, EndReason::Revoked, &Origin::SYSTEM).await?;
        }
        Ok(())
    }

    /// Sets the terms of a pool, even if the pool may not be opened for claims.
    async fn limit_closed_pool(&self, pool: &PoolId, terms: Terms) -> Result<(), Error> {
        for _ in 0..OPENINGS_PER_CALL_MAX {
            let backend = self.backend(pool.kind, pool.bucket())?;
            match backend.registry.revise(pool, terms, &Origin::SYSTEM).await {
                Ok(_) => return Ok(()),
                Err(RegistryError::PoolNotOpen) => {
                    backend.open(&self.ledger, pool, Some(terms), ready(Ok(()))).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(RegistryError::PoolNotOpen.into())
    }

    /// Returns `Err(NotHome)` unless this region may open the pool. A pool whose home is not on record may open.
    pub(super) async fn check_home(&self, pool: &PoolId) -> Result<(), Error> {
        if self.region == Region::default() || pool.kind != PoolKind::Subscriber {
            return Ok(());
        }
        let home = self.ledger.home(&pool.tenant, &UserId::new(&*pool.name)).await?;
        match home {
            Some(home) if !home.admits(self.region) => Err(Error::NotHome(Box::new(pool.clone()))),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns `true` for the closed pool of a home that has moved to this region. A home is on record a moment before the
    /// pool opens, so the registry has lost no memory.
    pub(super) async fn has_arrived_unopened(&self, pool: &PoolId) -> Result<bool, Error> {
        if self.region == Region::default() || pool.kind != PoolKind::Subscriber {
            return Ok(false);
        }
        let home = self.ledger.home(&pool.tenant, &UserId::new(&*pool.name)).await?;
        let has_arrived =
            home.is_some_and(|home| home.version > Home::FIRST_VERSION && home.admits(self.region));
        Ok(has_arrived && self.view_here(pool, 0).await?.is_none())
    }

    /// Returns `Err(NotHome)` for a session that goes on in another region.
    pub(super) async fn check_not_moved(&self, id: SessionId, who: &Authority) -> Result<(), Error> {
        if self.region == Region::default() || who.kind.is_some_and(|kind| kind != PoolKind::Subscriber) {
            return Ok(());
        }
        let Some(found) = self.ledger.find_session(id).await? else { return Ok(()) };
        let record = found.record;
        if record.ended.is_none() && who.covers(&record.pool, &record.session) {
            // The home may have arrived a moment ago, and its pool is not open yet.
            return self.past(id, who).await.map(drop);
        }
        let is_moved = record.ended.is_some_and(|end| end.reason == EndReason::Moved);
        if is_moved && who.covers(&record.pool, &record.session) {
            return self.check_home(&record.pool).await;
        }
        Ok(())
    }

    /// Returns `Err(NotHome)` for a denial by the limit of a pool that is closed for a move.
    pub(super) async fn check_denial(&self, pool: &PoolId, claimed: &Claimed) -> Result<(), Error> {
        match claimed.answer {
            Answer::Denied(Denial::Full { free_in: None }) if claimed.limit == Seats(0) => {
                self.check_home(pool).await
            }
            Answer::Denied(_) | Answer::Granted { .. } => Ok(()),
        }
    }
}
