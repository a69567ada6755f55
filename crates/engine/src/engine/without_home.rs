//! Sessions in place of the home: a node admits a subscriber alone while the subscriber's home region is unreachable. A
//! separate memory of the node keeps these sessions, and the modes of buckets have no effect on the memory. The engine does
//! not ask for the home: the caller says when a home is away, and when the home is back.

use std::future::ready;
use std::time::Instant;

use seatkeeper_core::{Authority, EndReason, Origin, PoolId, PoolKind, SessionId};
use seatkeeper_registry::{Answer, Claimed, Ended, Error as RegistryError, Heartbeat, PoolView, Request};

use super::{EndedSession, Engine, HeartbeatOutcome, OPENINGS_PER_CALL_MAX};
use crate::backend::Backend;
use crate::error::Error;

impl Engine {
    /// Decides the claim of a subscriber by this node alone, in place of the unreachable home. Returns a granted seat once
    /// the admission is on record. Returns `Err(NotServing)` for every other kind of pool.
    pub async fn claim_without_home(&self, request: Request<'_>) -> Result<Claimed, Error> {
        let began = Instant::now();
        let decided = self.decide_without_home(request).await;
        self.metrics.claimed(request.pool.kind, &decided, began.elapsed());
        decided
    }

    async fn decide_without_home(&self, request: Request<'_>) -> Result<Claimed, Error> {
        let (kind, bucket) = (request.pool.kind, request.pool.bucket());
        let backend = self.registries.without_home.as_ref().filter(|_| kind == PoolKind::Subscriber);
        let backend = backend.ok_or(RegistryError::NotServing { bucket })?;
        for _ in 0..OPENINGS_PER_CALL_MAX {
            backend.check_room(bucket)?;
            match backend.registry.claim(request).await {
                Ok(claimed) => {
                    if let Answer::Granted { .. } = claimed.answer {
                        self.durable(backend, claimed.receipt).await?;
                    }
                    return Ok(claimed);
                }
                Err(RegistryError::PoolNotOpen) => {
                    backend.open(&self.ledger, request.pool, request.policy.terms, ready(Ok(()))).await?;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(RegistryError::PoolNotOpen.into())
    }

    /// Returns the pool of a live session in place of the home, if `who` may see the session.
    pub async fn pool_without_home(&self, id: SessionId, who: Authority) -> Result<Option<PoolId>, Error> {
        let Some(backend) = self.kept_without_home(PoolKind::Subscriber) else { return Ok(None) };
        let live = backend.registry.session(id, &who.through(PoolKind::Subscriber)).await?;
        Ok(live.map(|live| live.pool))
    }

    /// Ends a session in place of the home as `expired`, because the home is back.
    pub async fn end_without_home(&self, id: SessionId, who: Authority) -> Result<(), Error> {
        let Some(backend) = self.kept_without_home(PoolKind::Subscriber) else { return Ok(()) };
        let who = who.through(PoolKind::Subscriber);
        self.end_kept(backend, id, &who, EndReason::Expired, &Origin::SYSTEM).await.map(drop)
    }

    /// Returns a pool with up to `max` of its sessions in place of the home; `None` without a live session.
    pub async fn view_without_home(&self, pool: &PoolId, max: usize) -> Result<Option<PoolView>, Error> {
        let Some(backend) = self.kept_without_home(pool.kind) else { return Ok(None) };
        match backend.registry.view(pool, max).await {
            Ok(view) => Ok(Some(view).filter(|view| view.live > 0)),
            Err(RegistryError::PoolNotOpen) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the memory of sessions in place of homes, unless the memory is empty.
    pub(super) fn kept_without_home(&self, kind: PoolKind) -> Option<&Backend> {
        let backend = self.registries.without_home.as_ref()?;
        (kind == PoolKind::Subscriber && backend.is_in_use()).then_some(backend)
    }

    /// Renews a session of `backend`; `None` if `backend` lacks the session.
    pub(super) async fn beat_without_home(
        &self,
        backend: &Backend,
        id: SessionId,
        who: &Authority,
        origin: &Origin,
    ) -> Result<Option<HeartbeatOutcome>, Error> {
        match backend.registry.heartbeat(id, who, origin).await? {
            Heartbeat::Renewed(liveness) => Ok(Some(HeartbeatOutcome::Renewed(liveness))),
            Heartbeat::Over { last_heartbeat, receipt } => {
                self.durable(backend, receipt).await?;
                Ok(Some(HeartbeatOutcome::Ended(EndedSession::expired(last_heartbeat))))
            }
            Heartbeat::Missing | Heartbeat::NeverWas => Ok(None),
        }
    }

    /// Ends a session of `backend`, and returns the reason once the end is on record; `None` if `backend` lacks the session.
    pub(super) async fn end_kept(
        &self,
        backend: &Backend,
        id: SessionId,
        who: &Authority,
        reason: EndReason,
        origin: &Origin,
    ) -> Result<Option<EndReason>, Error> {
        match backend.registry.end(id, who, reason, origin).await? {
            Ended::Now { reason, receipt } => {
                self.durable(backend, receipt).await?;
                Ok(Some(reason))
            }
            // A device's session has a single user.
            Ended::Left => Ok(Some(reason)),
            Ended::Missing => Ok(None),
        }
    }
}
