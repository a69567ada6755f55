//! The registries under failover: the source and the target of each rebuild.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_core::{Bucket, PoolKind};
use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_registry::{Condition, Rebuild, State};

use super::{Route, route_for};

/// Timeout of a survey of a registry. After it, every bucket of the registry counts as unreachable. Longer than the 1 s
/// within which each server of a Redis Cluster must answer: one silent master is no reason to give up the others.
const LOOK_MAX: Duration = Duration::from_millis(1_500);

/// The registries under failover. In each mode at most one of them serves a bucket.
#[derive(Clone)]
pub(crate) struct RebuildTargets {
    /// The configured registry.
    pub(crate) main: Arc<dyn Rebuild>,
    /// `main` is in the ledger's own database, and so is unreachable only together with the ledger.
    pub(crate) is_ledgers: bool,
    /// The registry that serves in place of `main` while `main` is unreachable.
    pub(crate) standby: Option<Arc<dyn Rebuild>>,
    /// A separate registry serves sessions without heartbeats.
    pub(crate) has_lasting: bool,
}

/// The conditions of all buckets, in the order of buckets.
pub(super) struct Conditions {
    pub(super) main: Vec<Condition>,
    /// The conditions in the standby; `None` if no mode requires the standby.
    pub(super) standby: Option<Vec<Condition>>,
}

impl Conditions {
    /// Returns the condition of a bucket in the standby, if the standby was surveyed.
    pub(super) fn standby_of(&self, bucket: Bucket) -> Option<&Condition> {
        self.standby.as_ref()?.get(usize::from(bucket.number()))
    }

    /// Returns the state of a bucket in the configured registry.
    pub(super) fn main_state_of(&self, bucket: Bucket) -> &State {
        self.main.get(usize::from(bucket.number())).map_or(&State::Unreachable, |condition| &condition.state)
    }

    /// Returns the epoch for which the configured registry was last filled; 0 if the registry does not tell.
    pub(super) fn main_epoch_of(&self, bucket: Bucket) -> u64 {
        match *self.main_state_of(bucket) {
            State::Serving { epoch, .. } | State::Rebuilding { epoch } => epoch,
            State::Unreachable | State::Missing => 0,
        }
    }
}

impl RebuildTargets {
    /// Surveys the buckets in the configured registry, and in the standby if one of `modes` may be served by
    /// the standby.
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

    /// Returns the registry that serves buckets of this mode.
    pub(super) fn in_mode(&self, mode: BucketMode) -> Option<&Arc<dyn Rebuild>> {
        match mode {
            BucketMode::Registry => Some(&self.main),
            BucketMode::Ledger | BucketMode::Allow => self.standby.as_ref(),
            BucketMode::Deny => None,
        }
    }

    /// Returns whether the registry for buckets of mode `mode` has pools of kind `kind`.
    pub(super) fn holds(&self, kind: PoolKind, mode: BucketMode) -> bool {
        match route_for(kind, mode) {
            Route::Main | Route::Standby => true,
            Route::Lasting => mode == BucketMode::Registry && !self.has_lasting,
            Route::NodeLocal | Route::Nowhere => false,
        }
    }
}

async fn look(registry: &Arc<dyn Rebuild>) -> Vec<Condition> {
    let conditions = tokio::time::timeout(LOOK_MAX, registry.conditions()).await;
    conditions.unwrap_or_else(|_| Bucket::all().map(Condition::unreachable).collect())
}
