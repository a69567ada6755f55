//! The registries of a node: which one serves which pools.

use std::sync::Arc;

use seatkeeper_core::PoolKind;
use seatkeeper_ledger::BucketMode;
use seatkeeper_registry::Registry;

use crate::backend::Backend;
use crate::commits::Commits;
use crate::failover::{Route, route_for};

/// The registries of a server.
#[derive(Clone)]
pub struct Registries {
    /// The one that is configured.
    pub main: Backend,
    /// What serves in its place while it is out of reach, if anything does.
    pub standby: Option<Backend>,
    /// What serves sessions that last; none: the main one, and nothing while that is out of reach.
    pub lasting: Option<Backend>,
    /// This node's memory, where nodes may decide alone while the main one is out of reach.
    pub node_local: Option<Backend>,
}

impl Registries {
    /// The one registry of a server that has no others beside it.
    pub fn only(registry: Arc<dyn Registry>, commits: Commits) -> Self {
        Self { main: Backend::lasting(registry, commits), standby: None, lasting: None, node_local: None }
    }

    /// What serves pools of this kind in buckets of this mode; none: they are denied.
    pub(crate) fn serving(&self, kind: PoolKind, mode: BucketMode) -> Option<&Backend> {
        match route_for(kind, mode) {
            Route::Main => Some(&self.main),
            Route::Standby => self.standby.as_ref(),
            Route::Lasting => Some(self.for_capacities()),
            Route::NodeLocal => self.node_local.as_ref(),
            Route::Nowhere => None,
        }
    }

    /// What serves capacities, and tells the time to all that is not decided by a registry.
    pub fn for_capacities(&self) -> &Backend {
        self.lasting.as_ref().unwrap_or(&self.main)
    }

    /// Says that the time comes from this process: no other registry's clock could be set.
    pub fn has_own_clock(&self) -> bool {
        self.lasting.is_none() && self.main.always_serves()
    }

    /// Whether a backend of these is that of the registry that is configured.
    pub fn is_main(&self, backend: &Backend) -> bool {
        Arc::ptr_eq(&backend.commits, &self.main.commits)
    }

    /// All whose sessions are those of the ledger.
    pub fn all(&self) -> impl Iterator<Item = &Backend> {
        self.lasting.iter().chain(self.with_heartbeats())
    }

    /// Those of them whose sessions are kept alive by heartbeats.
    pub fn with_heartbeats(&self) -> impl Iterator<Item = &Backend> {
        self.standby.iter().chain([&self.main])
    }
}
