//! The registries of a node: which one serves which pools.

use std::sync::Arc;

use seatkeeper_core::PoolKind;
use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_registry::Registry;

use crate::backend::Backend;
use crate::commits::Commits;
use crate::failover::{Route, route_for};

/// The registries of a server.
#[derive(Clone)]
pub struct Registries {
    /// The configured registry.
    pub main: Backend,
    /// The registry that serves licenses while `main` is out of reach; `None` if licenses are denied then.
    pub standby: Option<Backend>,
    /// The registry of capacities; `None` if `main` serves capacities as well.
    pub lasting: Option<Backend>,
    /// The memory of this node, which serves devices while `main` is out of reach; `None` if devices are denied then.
    pub node_local: Option<Backend>,
}

impl Registries {
    /// A single registry, which serves every kind of pool.
    pub fn only(registry: Arc<dyn Registry>, commits: Commits) -> Self {
        Self { main: Backend::lasting(registry, commits), standby: None, lasting: None, node_local: None }
    }

    /// Returns the backend that serves pools of `kind` in buckets of `mode`; `None` if such pools are denied.
    pub(crate) fn serving(&self, kind: PoolKind, mode: BucketMode) -> Option<&Backend> {
        match route_for(kind, mode) {
            Route::Main => Some(&self.main),
            Route::Standby => self.standby.as_ref(),
            Route::Lasting => Some(self.for_capacities()),
            Route::NodeLocal => self.node_local.as_ref(),
            Route::Nowhere => None,
        }
    }

    /// The backend of capacities. Its clock tells the time to everything that no registry decides.
    pub fn for_capacities(&self) -> &Backend {
        self.lasting.as_ref().unwrap_or(&self.main)
    }

    /// Returns whether the time comes from this process, so that nobody can set the registry's clock.
    pub fn has_own_clock(&self) -> bool {
        self.lasting.is_none() && self.main.always_serves()
    }

    /// Returns whether `backend` is the configured registry.
    pub fn is_main(&self, backend: &Backend) -> bool {
        Arc::ptr_eq(&backend.commits, &self.main.commits)
    }

    /// Every backend whose sessions are in the ledger.
    pub fn all(&self) -> impl Iterator<Item = &Backend> {
        self.lasting.iter().chain(self.with_heartbeats())
    }

    /// Every backend of sessions that live by heartbeats.
    pub fn with_heartbeats(&self) -> impl Iterator<Item = &Backend> {
        self.standby.iter().chain([&self.main])
    }
}
