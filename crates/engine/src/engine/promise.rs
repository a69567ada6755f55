//! Limits of promises: if another process can take the ledger, an engine promises sessions by the latest proof of its
//! ownership.

use seatkeeper_core::{PoolId, PoolKind, RegistryTime, Span};
use seatkeeper_registry::{Live, Liveness};

use super::Engine;
use crate::durability::Durability;
use crate::error::Error;
use crate::failover::PROOF_AGE_MAX;

/// An answer that promises a session until a time.
pub(super) trait Promise {
    /// Returns the session's pool and TTL.
    fn session(&self) -> (&PoolId, Span);

    /// Returns the end of the promise, and the span from now to the end.
    fn end(&mut self) -> (&mut RegistryTime, &mut Span);
}

impl Promise for Live {
    fn session(&self) -> (&PoolId, Span) {
        (&self.pool, self.session.ttl)
    }

    fn end(&mut self) -> (&mut RegistryTime, &mut Span) {
        (&mut self.expires, &mut self.expires_in)
    }
}

impl Promise for Liveness {
    fn session(&self) -> (&PoolId, Span) {
        (&self.pool, self.ttl)
    }

    fn end(&mut self) -> (&mut RegistryTime, &mut Span) {
        (&mut self.expires, &mut self.expires_in)
    }
}

impl Engine {
    /// Limits the promise of an answer that rests on no commit, if another process can take the ledger. Returns
    /// `Err(NotServing)` if nothing may be promised: the session goes on after the next proof of the ownership.
    ///
    /// - The heartbeats of a license tell the end of the session, so the promise is shortened.
    /// - The heartbeats of devices and groups tell no end, and need a recent proof. A shortened TTL would stay with the
    ///   client for the life of the session.
    /// - A session without heartbeats keeps its end, which is on record.
    pub(super) fn limit_promise(&self, promise: &mut impl Promise) -> Result<(), Error> {
        let (pool, ttl) = promise.session();
        let (kind, bucket) = (pool.kind, pool.bucket());
        if needs_recent_proof(kind) {
            return Ok(self.lease.check_recent_proof(bucket)?);
        }
        let Some(max) = self.lease.promise_max(bucket, ttl)?.filter(|_| kind.has_heartbeats()) else {
            return Ok(());
        };
        let (expires, expires_in) = promise.end();
        let excess = expires_in.as_millis().saturating_sub(max.as_millis());
        *expires = *expires - Span::from_millis(excess);
        *expires_in = Span::from_millis(expires_in.as_millis() - excess);
        Ok(())
    }

    /// Returns `Err(NotServing)` before a claim without a commit that may be answered by no promise, so that the claim takes
    /// no seat and evicts nobody.
    pub(super) fn check_may_promise(&self, pool: &PoolId, durability: Durability) -> Result<(), Error> {
        match durability {
            Durability::Journal if needs_recent_proof(pool.kind) => {
                Ok(self.lease.check_recent_proof(pool.bucket())?)
            }
            Durability::Journal | Durability::Ledger => Ok(()),
        }
    }
}

/// Returns the shortest TTL in a new owner's memory of a session under terms with `ttl`: the previous owner may have answered
/// heartbeats that tell no end, each a promise of a TTL, for [`PROOF_AGE_MAX`] after the takeover.
pub(crate) const fn ttl_after_takeover(kind: PoolKind, ttl: Span) -> Span {
    if needs_recent_proof(kind) {
        Span::from_millis(ttl.as_millis().saturating_add(PROOF_AGE_MAX.as_millis() as u64))
    } else {
        ttl
    }
}

/// Returns `true` for sessions whose clients count on a full TTL from each answer to a heartbeat.
const fn needs_recent_proof(kind: PoolKind) -> bool {
    match kind {
        PoolKind::Subscriber | PoolKind::Group => true,
        PoolKind::License | PoolKind::Capacity => false,
    }
}

#[cfg(test)]
mod tests;
