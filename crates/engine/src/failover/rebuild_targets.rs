//! The registries whose buckets are rebuilt.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_core::{Bucket, PoolKind};
use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_registry::{Condition, Rebuild, State};

use super::{Route, route_for};

/// How long a registry may take to tell how it is. Past it, it counts as out of reach.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// The registries of which one serves a bucket.
#[derive(Clone)]
pub(crate) struct RebuildTargets {
    /// The one that is configured.
    pub(crate) main: Arc<dyn Rebuild>,
    /// Whether it is in the ledger's own database, and so is out of reach only where the ledger is.
    pub(crate) is_ledgers: bool,
    /// What takes its place while it is out of reach.
    pub(crate) standby: Option<Arc<dyn Rebuild>>,
    /// Whether sessions without heartbeats are served elsewhere.
    pub(crate) has_lasting: bool,
}

/// How the buckets are, each in order.
pub(super) struct Conditions {
    pub(super) main: Vec<Condition>,
    /// None if nobody had to know.
    pub(super) standby: Option<Vec<Condition>>,
}

impl Conditions {
    /// How a bucket is in the standby, if somebody had to know.
    pub(super) fn standby_of(&self, bucket: Bucket) -> Option<&Condition> {
        self.standby.as_ref()?.get(usize::from(bucket.number()))
    }

    /// The state of a bucket in the registry that is configured.
    pub(super) fn main_state_of(&self, bucket: Bucket) -> &State {
        self.main.get(usize::from(bucket.number())).map_or(&State::Unreachable, |condition| &condition.state)
    }

    /// The epoch for which the configured registry was filled last, as far as it tells; 0 if it does not.
    pub(super) fn main_epoch_of(&self, bucket: Bucket) -> u64 {
        match *self.main_state_of(bucket) {
            State::Serving { epoch, .. } | State::Rebuilding { epoch } => epoch,
            State::Unreachable | State::Missing => 0,
        }
    }
}

impl RebuildTargets {
    /// How the buckets are; those of the standby if it may have to serve one.
    pub(super) async fn conditions(&self, mut modes: impl Iterator<Item = BucketMode>) -> Conditions {
        let is_needed = modes.any(|mode| route_for(PoolKind::License, mode) == Route::Standby);
        let standby = self.standby.as_ref().filter(|_| is_needed);
        let standby = async {
            match standby {
                Some(standby) => Some(look(standby).await),
                None => None,
            }
        };
        let (main, standby) = tokio::join!(look(&self.main), standby);
        Conditions { main, standby }
    }

    /// What serves buckets of this mode.
    pub(super) fn in_mode(&self, mode: BucketMode) -> Option<&Arc<dyn Rebuild>> {
        match mode {
            BucketMode::Registry => Some(&self.main),
            BucketMode::Ledger | BucketMode::Allow => self.standby.as_ref(),
            BucketMode::Deny => None,
        }
    }

    /// Whether what serves buckets of this mode has pools of this kind.
    pub(super) fn holds(&self, kind: PoolKind, mode: BucketMode) -> bool {
        match route_for(kind, mode) {
            Route::Main | Route::Standby => true,
            Route::Lasting => mode == BucketMode::Registry && !self.has_lasting,
            Route::NodeLocal | Route::Nowhere => false,
        }
    }
}

async fn look(registry: &Arc<dyn Rebuild>) -> Vec<Condition> {
    let unreachable = |bucket| Condition { bucket, server: None, state: State::Unreachable };
    let conditions = tokio::time::timeout(LOOK_MAX, registry.conditions()).await;
    conditions.unwrap_or_else(|_| Bucket::all().map(unreachable).collect())
}
