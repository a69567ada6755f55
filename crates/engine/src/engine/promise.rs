//! Limits of promises: an engine whose ledger another process can take promises a session no further than a TTL after the
//! latest proof that the ledger is its own.

use seatkeeper_core::{PoolId, RegistryTime, Span};
use seatkeeper_registry::{Live, Liveness};

use super::Engine;
use crate::error::Error;

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
    /// Shortens the promise of an answer that rests on no commit of its own, if another process can take the ledger.
    /// Returns `Err(NotServing)` if no time is left: the session goes on once the ledger has proved the ownership.
    ///
    /// A session without heartbeats keeps its end, which is on record.
    pub(super) fn limit_promise(&self, promise: &mut impl Promise) -> Result<(), Error> {
        let (pool, ttl) = promise.session();
        let has_heartbeats = pool.kind.has_heartbeats();
        let Some(max) = self.lease.promise_max(pool.bucket(), ttl)?.filter(|_| has_heartbeats) else {
            return Ok(());
        };
        let (expires, expires_in) = promise.end();
        let excess = expires_in.as_millis().saturating_sub(max.as_millis());
        *expires = *expires - Span::from_millis(excess);
        *expires_in = Span::from_millis(expires_in.as_millis() - excess);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
