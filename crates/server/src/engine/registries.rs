//! Which registry serves what.

use std::sync::Arc;

use seatkeeper_core::{Bucket, PoolKind};
use seatkeeper_ledger::BucketMode;
use seatkeeper_registry::{Epochs, Registry};

use super::Commits;
use crate::failover::{Place, place_of};

/// A registry, and how far the ledger has come with its journal.
#[derive(Clone)]
pub(crate) struct Station {
    pub(crate) registry: Arc<dyn Registry>,
    pub(crate) commits: Arc<Commits>,
    /// The epochs in which it serves; none: it always does, for nobody can take its place.
    epochs: Option<Arc<Epochs>>,
}

impl Station {
    /// A registry whose place nobody takes.
    pub(crate) fn lasting(registry: Arc<dyn Registry>, commits: Commits) -> Self {
        Self { registry, commits: Arc::new(commits), epochs: None }
    }

    /// A registry that serves in these epochs.
    pub(crate) fn rebuilt(registry: Arc<dyn Registry>, commits: Commits, epochs: Arc<Epochs>) -> Self {
        Self { registry, commits: Arc::new(commits), epochs: Some(epochs) }
    }

    /// Whether another registry can take its place, so that what it says holds for an epoch alone.
    pub(crate) fn is_rebuilt(&self) -> bool {
        self.epochs.is_some()
    }

    /// Whether it serves any bucket now.
    pub(crate) fn serves_any(&self) -> bool {
        let serves = |epochs: &Arc<Epochs>| Bucket::all().any(|bucket| epochs.of(bucket) != Epochs::NONE);
        self.epochs.as_ref().is_none_or(serves)
    }
}

/// The registries of a server.
#[derive(Clone)]
pub(crate) struct Registries {
    /// The one that is configured.
    pub(crate) main: Station,
    /// What serves in its place while it is out of reach, if anything does.
    pub(crate) standby: Option<Station>,
    /// What serves sessions that last; none: the main one, and nothing while that is out of reach.
    pub(crate) lasting: Option<Station>,
}

impl Registries {
    /// The one registry of a server that is alone.
    pub(crate) fn alone(registry: Arc<dyn Registry>, commits: Commits) -> Self {
        Self { main: Station::lasting(registry, commits), standby: None, lasting: None }
    }

    /// What serves pools of this kind in buckets of this mode; none: they are denied.
    pub(crate) fn of(&self, kind: PoolKind, mode: BucketMode) -> Option<&Station> {
        match place_of(kind, mode) {
            Place::Main => Some(&self.main),
            Place::Standby => self.standby.as_ref(),
            Place::Lasting => Some(self.for_capacities()),
            Place::Nowhere => None,
        }
    }

    /// What serves capacities, and tells the time to all that is not decided by a registry.
    pub(crate) fn for_capacities(&self) -> &Station {
        self.lasting.as_ref().unwrap_or(&self.main)
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Station> {
        self.lasting.iter().chain(self.with_heartbeats())
    }

    /// Those whose sessions are kept alive by heartbeats.
    pub(crate) fn with_heartbeats(&self) -> impl Iterator<Item = &Station> {
        self.standby.iter().chain([&self.main])
    }
}
