//! The region that a home leaves: closes the pool, hands the live sessions over, and forwards from then on.

use std::time::{Duration, Instant};

use futures_util::{StreamExt as _, stream};
use seatkeeper_core::{Particulars, PoolId, Region, RegistryTime, Seats, Session, TenantId, UserId};
use seatkeeper_ledger::homes::{Departure, Home};
use seatkeeper_ledger::subscriptions::Entitled;

use super::arrivals::{SESSIONS_MAX, not_movable};
use super::handover::{ANCHOR_PATH, ARRIVALS_PATH, AnchorUpdate, Handover, READINESS_PATH, Subscribed};
use super::{Mover, pool_of};
use crate::error::Error;
use crate::group_screen::is_screen;
use crate::outbound::PeerFault;
use crate::regions::{HomeAnswer, HomeRecord};

/// Retry budget: the longest time for which a request to move a home repeats a failed step. The job goes on afterwards.
const CARRIED_MAX: Duration = Duration::from_secs(5);

/// The pause between two attempts of a step.
const PAUSE: Duration = Duration::from_millis(200);

/// Moves that the job carries on at the same time.
const CARRIED_AT_ONCE_MAX: usize = 16;

/// The longest time from the look at the record to the closing of the pool: less than the minute in which no home returns.
const CLOSING_MAX: Duration = Duration::from_secs(20);

/// The problem in a peer's refusal.
#[derive(serde::Deserialize)]
struct Refusal {
    detail: String,
}

/// The outcome of a request to move a home.
pub(crate) struct Moved {
    /// The home, in the target.
    pub(crate) home: Home,
    /// `false` if the move is under way: the job carries it on.
    pub(crate) is_done: bool,
}

/// Refuses a move while devices of the subscriber watch together: the members of a group live in a pool of their own, which does
/// not move.
fn check_groups(sessions: &[(Session, Particulars)]) -> Result<(), Error> {
    if sessions.iter().any(|(session, _)| is_screen(&session.holder)) {
        return Err(not_movable("Devices of the subscriber watch together."));
    }
    Ok(())
}

impl Mover {
    /// Moves a home that is here to region `to`. Nothing has changed after an `Err`.
    pub(crate) async fn move_home(
        &self,
        tenant: &TenantId,
        user: &UserId,
        to: Region,
    ) -> Result<Moved, Error> {
        let home = self.regions.home_of(tenant, user, &self.engine).await?;
        let (own, now) = (self.regions.own(), self.engine.now().await?);
        if home.region == to {
            return Ok(Moved { home, is_done: true });
        }
        if !home.admits(own) {
            return Err(Error::WrongRegion { home });
        }
        if home.admits_from.is_some_and(|from| from > now) {
            return Err(not_movable("The home is adopted from a lost region, and admits nobody yet."));
        }
        self.prepare(tenant, user, home, to).await?;
        // The questions to other regions took a while, in which a group may have begun.
        check_groups(&self.live(&pool_of(tenant, user)).await?)?;
        let begun = self.ledger.begin_home_move(tenant, user, own, to).await.map_err(Error::Ledger)?;
        self.regions.invalidate(tenant, user);
        let departure = self.ledger.home_moving(tenant, user).await.map_err(Error::Ledger)?;
        let present = departure.as_ref().map(|departure| departure.home).or(begun).unwrap_or(home);
        if present.region != to {
            return Err(not_movable("Another move of the home began a moment ago."));
        }
        let Some(departure) = departure else { return Ok(Moved { home: present, is_done: true }) };
        let until = Instant::now() + CARRIED_MAX;
        loop {
            match self.carry(&departure).await {
                Ok(()) => return Ok(Moved { home: departure.home, is_done: true }),
                Err(_) if Instant::now() + PAUSE < until => tokio::time::sleep(PAUSE).await,
                Err(error) => {
                    tell_stuck(&departure, &error);
                    return Ok(Moved { home: departure.home, is_done: false });
                }
            }
        }
    }

    /// Resumes every interrupted move from the first step. The steps of a move are idempotent.
    pub(crate) async fn carry_all(&self) -> Result<(), Error> {
        let departures = self.ledger.homes_moving().await.map_err(Error::Ledger)?;
        // A target that does not answer delays the moves to other targets by one timeout at most.
        stream::iter(departures)
            .for_each_concurrent(CARRIED_AT_ONCE_MAX, async |departure| {
                if let Err(error) = self.carry(&departure).await {
                    tell_stuck(&departure, &error);
                }
            })
            .await;
        Ok(())
    }

    /// Asks the target and the anchor before the pool is closed, so that a move that cannot end does not begin.
    async fn prepare(&self, tenant: &TenantId, user: &UserId, home: Home, to: Region) -> Result<(), Error> {
        let pool = pool_of(tenant, user);
        let sessions = self.live(&pool).await?;
        check_groups(&sessions)?;
        let version = home.version + 1;
        let handover = self.handover(tenant, user, version, sessions.clone()).await?;
        if handover.limit < u32::try_from(sessions.len()).unwrap_or(u32::MAX) {
            return Err(not_movable("More sessions are live than the subscriber's plan allows."));
        }
        // The target asks the anchor for the present home, and the anchor may have missed the move to here.
        let recorded = self.tell_anchor(tenant, user, home).await?;
        if recorded.is_some_and(|recorded| recorded.version > home.version) {
            return Err(not_movable("The anchor has a newer home of the subscriber on record."));
        }
        self.tell(to, READINESS_PATH, &handover).await.map(drop)
    }

    /// Returns the live sessions of a pool, without their particulars, and at most one more than a home takes along.
    async fn live(&self, pool: &PoolId) -> Result<Vec<(Session, Particulars)>, Error> {
        let view = self.engine.view_here(pool, SESSIONS_MAX + 1).await?;
        let live = view.map(|view| view.sessions).unwrap_or_default();
        Ok(live.into_iter().map(|live| (live.session, Particulars::default())).collect())
    }

    /// Carries a move from its first step to its end.
    async fn carry(&self, departure: &Departure) -> Result<(), Error> {
        let Departure { tenant, user, home, .. } = departure;
        let pool = departure.pool();
        if !self.close(departure).await? {
            return Ok(());
        }
        let records = self.ledger.departed_sessions(departure).await.map_err(Error::Ledger)?;
        let sessions = records.into_iter().map(|record| (record.session, record.particulars)).collect();
        let mut handover = self.handover(tenant, user, home.version, sessions).await?;
        handover.seq = self.ledger.pool_seq(&pool).await.map_err(Error::Ledger)?;
        handover.answers = self.ledger.kept_answers(&pool).await.map_err(Error::Ledger)?;
        self.tell(home.region, ARRIVALS_PATH, &handover).await?;
        self.ledger.end_home_move(departure).await.map_err(Error::Ledger)?;
        self.regions.invalidate(tenant, user);
        if let Err(error) = self.tell_anchor(tenant, user, *home).await {
            // This region names the new home to whoever follows the anchor's older answer.
            tracing::warn!(
                tenant = tenant.as_str(),
                user = user.as_str(),
                causes = error.with_causes(),
                "the anchor was not told of a home that has moved: requests of regions new to the subscriber take one \
                 region more until the anchor learns the home from such a request"
            );
        }
        tracing::info!(
            tenant = tenant.as_str(),
            user = user.as_str(),
            region = home.region.number(),
            version = home.version,
            "a home has moved to another region: its requests are forwarded from now on"
        );
        Ok(())
    }

    /// Closes the pool of a departing home. Returns `false` if the move has ended.
    async fn close(&self, departure: &Departure) -> Result<bool, Error> {
        let Departure { tenant, user, .. } = departure;
        // Another worker may have ended the move meanwhile, or may end the move after the look.
        let until = Instant::now() + CLOSING_MAX;
        if self.ledger.home_moving(tenant, user).await.map_err(Error::Ledger)?.as_ref() != Some(departure) {
            return Ok(false);
        }
        let terms = self.entitled(tenant, user).await?.terms;
        // A group that began after the last look ends: the pool of the members does not move.
        let cannot_move = |session: &Session| is_screen(&session.holder);
        self.engine.close_for_move(&departure.pool(), terms, until, cannot_move).await?;
        Ok(true)
    }

    /// Returns this region's own record of a home, for region `asker`. The pool of a home on its way to `asker` is closed
    /// before the answer, so that a forged handover comes too early for no target.
    pub(crate) async fn recorded(
        &self,
        tenant: &TenantId,
        user: &UserId,
        asker: Region,
    ) -> Result<Option<HomeRecord>, Error> {
        let departure = self.ledger.home_moving(tenant, user).await.map_err(Error::Ledger)?;
        if let Some(departure) = departure.filter(|departure| departure.home.region == asker) {
            self.close(&departure).await?;
        }
        let home = self.ledger.home(tenant, user).await.map_err(Error::Ledger)?;
        Ok(home.as_ref().map(HomeRecord::from_home))
    }

    async fn handover(
        &self,
        tenant: &TenantId,
        user: &UserId,
        version: u64,
        sessions: Vec<(Session, Particulars)>,
    ) -> Result<Handover, Error> {
        let now = self.engine.time_for(&pool_of(tenant, user)).await?;
        let subscription = self.subscribed(tenant, user, now).await?;
        let Seats(limit) = self.entitled(tenant, user).await?.terms.limit;
        Ok(Handover {
            tenant: tenant.as_str().to_owned(),
            user: user.as_str().to_owned(),
            version,
            seq: 0,
            limit,
            sessions,
            subscription: subscription.as_ref().map(Subscribed::from_subscription),
            answers: Vec::new(),
        })
    }

    pub(super) async fn entitled(&self, tenant: &TenantId, user: &UserId) -> Result<Entitled, Error> {
        let now = self.engine.time_for(&pool_of(tenant, user)).await?;
        self.entitled_at(tenant, user, now).await
    }

    /// Returns the entitlement at `now`. Sessions that are admitted at `now` need the terms of the same instant: `audit verify`
    /// compares the two.
    pub(super) async fn entitled_at(
        &self,
        tenant: &TenantId,
        user: &UserId,
        now: RegistryTime,
    ) -> Result<Entitled, Error> {
        let subscriber = self.ledger.subscriber(tenant, user).await.map_err(Error::Ledger)?;
        Ok(subscriber.entitled(now, self.ttl_default))
    }

    /// Tells the anchor of a new home, unless this region or the target is the anchor. Returns the anchor's home on record.
    async fn tell_anchor(
        &self,
        tenant: &TenantId,
        user: &UserId,
        home: Home,
    ) -> Result<Option<HomeAnswer>, Error> {
        let anchor = self.regions.anchor_of(tenant).await?.region;
        if anchor == self.regions.own() || anchor == home.region {
            return Ok(None);
        }
        let update = AnchorUpdate {
            tenant: tenant.as_str().to_owned(),
            user: user.as_str().to_owned(),
            region: home.region.number(),
            version: home.version,
        };
        let answer = self.tell(anchor, ANCHOR_PATH, &update).await?;
        match serde_json::from_slice(&answer) {
            Ok(recorded) => Ok(Some(recorded)),
            Err(_) => {
                Err(Error::RegionUnavailable { peer: anchor, source: PeerFault::refused(200, &answer) })
            }
        }
    }

    /// Sends a step of a move to a peer, and returns the body of the answer.
    async fn tell(&self, peer: Region, path: &str, step: &impl serde::Serialize) -> Result<Vec<u8>, Error> {
        let (status, body) = self.regions.ask(peer, path, step).await?;
        match status {
            200..=299 => Ok(body),
            409 => {
                let refusal = serde_json::from_slice(&body).ok();
                let detail = refusal.map(|refusal: Refusal| refusal.detail);
                Err(Error::HomeNotMovable(detail.unwrap_or_else(|| "The peer refuses the move.".to_owned())))
            }
            _ => Err(Error::RegionUnavailable { peer, source: PeerFault::refused(status, &body) }),
        }
    }
}

/// Logs a move that makes no progress.
fn tell_stuck(departure: &Departure, error: &Error) {
    tracing::warn!(
        tenant = departure.tenant.as_str(),
        user = departure.user.as_str(),
        region = departure.home.region.number(),
        causes = error.with_causes(),
        "a move of a home is stuck, and the subscriber's claims and heartbeats get 503: the job `moves` repeats the step \
         every 5 s; bring the target back, or remove the cause that the target names"
    );
}
