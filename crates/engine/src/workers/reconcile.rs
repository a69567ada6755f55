//! Applies changed entitlements to the live sessions of their pools.
//!
//! A node commits a change of an entitlement, such as the suspension of a license, and then applies the
//! change to the pool. A node's death in between leaves sessions alive that should have ended. Every node
//! therefore looks, at its start and every 5 s, for recently changed entitlements whose pool has only older
//! terms.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use parking_lot::Mutex;
use seatkeeper_core::{Origin, PoolId, RegistryTime, Span};
use seatkeeper_ledger::Ledger;

use crate::engine::Engine;
use crate::error::{Error, with_causes};
use crate::terms::TermsSource;
use crate::worker::{Progress, Worker};

/// The interval between two looks of a node. With [`AGE_MIN`], a change left undone is applied within 10 s and the
/// duration of a look. The documentation promises 20 s.
const INTERVAL: Duration = Duration::from_secs(5);

/// The pause after a look that failed for some pool.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The first look of a node goes back this far.
const FIRST_LOOK_BACK: Span = Span::from_secs(3_600);

/// Each later look overlaps the look before by this time: a change may be committed this long after its
/// timestamp.
const LOOK_BACK: Span = Span::from_secs(60);

/// The smallest age of a change to look at: a live node applies its own changes within this time.
const AGE_MIN: Span = Span::from_secs(5);

/// The number of pools in one page of the query.
const POOLS_MAX: u32 = 500;

/// The number of pools compared concurrently.
const POOLS_AT_ONCE: usize = 16;

/// The worker that applies changed entitlements.
pub(crate) struct Reconcile {
    pub(crate) engine: Arc<Engine>,
    pub(crate) ledger: Ledger,
    pub(crate) terms: Arc<dyn TermsSource>,
    /// The start of the last look that reconciled every pool.
    pub(crate) looked: Mutex<Option<RegistryTime>>,
}

#[async_trait]
impl Worker for Reconcile {
    type Error = Error;

    fn name(&self) -> &'static str {
        "reconcile"
    }

    fn rest(&self) -> Duration {
        INTERVAL
    }

    async fn activate(&self) -> Result<Progress, Error> {
        let now = self.engine.now().await?;
        let since = match *self.looked.lock() {
            // A look at a wrong time in the future must not hide changes until that time.
            Some(looked) => looked.min(now) - LOOK_BACK,
            None => now - FIRST_LOOK_BACK,
        };
        let changed = since..now - AGE_MIN;
        let (mut after, mut is_done) = (None, true);
        loop {
            let pools = self.ledger.entitlements_changed(changed.clone(), after.as_ref(), POOLS_MAX).await;
            let pools = pools?;
            is_done &= self.reconcile_all(&pools).await;
            if pools.len() < POOLS_MAX as usize {
                break;
            }
            after = pools.into_iter().next_back();
        }
        if !is_done {
            return Ok(Progress::Defer(RETRY_PAUSE));
        }
        *self.looked.lock() = Some(now);
        Ok(Progress::Idle)
    }
}

impl Reconcile {
    /// Reconciles pools in parallel, so that pools on a silent server hold up the others little. Returns whether every
    /// pool was reached.
    async fn reconcile_all(&self, pools: &[PoolId]) -> bool {
        let reconciled: Vec<_> = pools.iter().map(|pool| self.reconcile_or_log(pool)).collect();
        stream::iter(reconciled)
            .buffer_unordered(POOLS_AT_ONCE)
            .fold(true, async |all, is_done| all & is_done)
            .await
    }

    /// Reconciles a pool. Returns whether the pool was reached.
    async fn reconcile_or_log(&self, pool: &PoolId) -> bool {
        let reconciled = self.reconcile(pool).await;
        if let Err(error) = &reconciled {
            let causes = with_causes(error);
            tracing::debug!(?pool, %causes, "a pool could not be compared with its entitlement: retried in a second");
        }
        reconciled.is_ok()
    }

    /// Applies the entitlement to an open pool with live sessions, if the pool has only older terms. A pool at home in
    /// another region is skipped.
    async fn reconcile(&self, pool: &PoolId) -> Result<(), Error> {
        let Some(view) = self.engine.view_here(pool, 0).await? else { return Ok(()) };
        let now = self.engine.time_for(pool).await?;
        let terms = self.terms.terms(pool, now).await?;
        let Some(terms) = terms else { return Ok(()) };
        if view.live == 0 || view.terms.is_some_and(|seen| seen.version >= terms.version) {
            return Ok(());
        }
        tracing::warn!(
            ?pool,
            version = terms.version,
            "a changed entitlement had not reached its live sessions: it is applied now"
        );
        self.engine.revise(pool, terms, &Origin::SYSTEM).await
    }
}

#[cfg(test)]
mod tests;
