//! Brings changed entitlements to the sessions that are live by them.
//!
//! A node commits a change, say that a license is suspended, and then lets the pool learn it. A node that dies in between
//! leaves sessions alive that should have ended. So each node looks, after its start and from time to time, for
//! entitlements that changed lately and whose pool has seen older terms only.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use seatkeeper_core::{Origin, PoolId, RegistryTime, Span};
use seatkeeper_ledger::Ledger;

use crate::engine::Engine;
use crate::error::{Error, with_causes};
use crate::terms::TermsSource;
use crate::worker::{Progress, Worker};

/// Interval between two looks of a node.
const INTERVAL: Duration = Duration::from_secs(10);

/// The first look of a node goes back this far.
const FIRST_LOOK_BACK: Span = Span::from_secs(3_600);

/// Each later look overlaps the look before by this time: a change may be committed so long after the time that it bears.
const LOOK_BACK: Span = Span::from_secs(60);

/// The smallest age of a change: a live node carries its own changes out in this time.
const AGE_MIN: Span = Span::from_secs(5);

/// Pools that are read at once.
const POOLS_MAX: u32 = 500;

pub(crate) struct Reconcile {
    pub(crate) engine: Arc<Engine>,
    pub(crate) ledger: Ledger,
    pub(crate) terms: Arc<dyn TermsSource>,
    /// When the last look began that left nothing undone.
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
            // A look that was dated by a wrong time must not hide the changes until that time comes.
            Some(looked) => looked.min(now) - LOOK_BACK,
            None => now - FIRST_LOOK_BACK,
        };
        let changed = since..now - AGE_MIN;
        let (mut after, mut is_done) = (None, true);
        loop {
            let pools = self.ledger.entitlements_changed(changed.clone(), after.as_ref(), POOLS_MAX).await;
            let pools = pools?;
            for pool in &pools {
                if let Err(error) = self.reconcile(pool).await {
                    is_done = false;
                    let causes = with_causes(&error);
                    tracing::debug!(?pool, %causes, "a pool could not be held against its entitlement; later");
                }
            }
            if pools.len() < POOLS_MAX as usize {
                break;
            }
            after = pools.into_iter().next_back();
        }
        if is_done {
            *self.looked.lock() = Some(now);
        }
        Ok(Progress::Idle)
    }
}

impl Reconcile {
    /// Lets a pool that is open learn its entitlement, if it has seen older terms only.
    async fn reconcile(&self, pool: &PoolId) -> Result<(), Error> {
        let Some(view) = self.engine.view(pool, 0).await? else { return Ok(()) };
        let now = self.engine.time_for(pool).await?;
        let terms = self.terms.terms(pool, now).await?;
        let Some(terms) = terms else { return Ok(()) };
        if view.live == 0 || view.terms.is_some_and(|seen| seen.version >= terms.version) {
            return Ok(());
        }
        tracing::warn!(
            ?pool,
            version = terms.version,
            "a change of an entitlement had not reached its live sessions; it does now"
        );
        self.engine.revise(pool, terms, &Origin::SYSTEM).await
    }
}
