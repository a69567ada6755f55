//! The registries of a node, and the choice of the registry for a pool. The choice depends on the kind of the
//! pool and the mode of its bucket.

use std::sync::Arc;

use seatkeeper_core::PoolKind;
use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_registry::Registry;

use crate::backend::Backend;
use crate::commits::Commits;
use crate::failover::{Route, route_for};

/// The registries of a node.
#[derive(Clone)]
pub struct Registries {
    /// The configured registry.
    pub main: Backend,
    /// The registry that serves licenses while `main` is unreachable; `None` if licenses are denied
    /// meanwhile.
    pub standby: Option<Backend>,
    /// The registry of capacities; `None` if `main` serves capacities as well.
    pub lasting: Option<Backend>,
    /// The memory of this node, which serves devices while `main` is unreachable; `None` if devices are
    /// denied meanwhile.
    pub node_local: Option<Backend>,
    /// The memory of the node for subscribers with an unreachable home region; `None` if the settings deny these
    /// subscribers. No mode of a bucket leads to this backend: the caller knows of the home.
    pub without_home: Option<Backend>,
}

impl Registries {
    /// Returns a single registry for every kind of pool.
    pub fn only(registry: Arc<dyn Registry>, commits: Commits) -> Self {
        Self {
            main: Backend::lasting(registry, commits),
            standby: None,
            lasting: None,
            node_local: None,
            without_home: None,
        }
    }

    /// Returns the backend for pools of `kind` in buckets of `mode`; `None` if pools of `kind` are denied.
    pub(crate) fn serving(&self, kind: PoolKind, mode: BucketMode) -> Option<&Backend> {
        match route_for(kind, mode) {
            Route::Main => Some(&self.main),
            Route::Standby => self.standby.as_ref(),
            Route::Lasting => Some(self.for_capacities()),
            Route::NodeLocal => self.node_local.as_ref(),
            Route::Nowhere => None,
        }
    }

    /// Returns the mode that serves pools of `kind` in buckets of `mode`. The kinds differ: in buckets of mode `Ledger`
    /// licenses are served by PostgreSQL, and devices are denied.
    pub fn mode_for(&self, kind: PoolKind, mode: BucketMode) -> BucketMode {
        match self.serving(kind, mode) {
            Some(_) => route_for(kind, mode).mode(),
            None => BucketMode::Deny,
        }
    }

    /// Returns the backend of capacities. Its clock also gives the time for decisions outside the registry.
    pub fn for_capacities(&self) -> &Backend {
        self.lasting.as_ref().unwrap_or(&self.main)
    }

    /// Returns whether the time comes from this process. A clock of this process cannot be set by an
    /// operator.
    pub fn has_own_clock(&self) -> bool {
        self.lasting.is_none() && self.main.always_serves()
    }

    /// Returns every backend whose sessions are in the ledger.
    pub fn all(&self) -> impl Iterator<Item = &Backend> {
        self.lasting.iter().chain(self.with_heartbeats())
    }

    /// Returns the node-local backends, with `true` for the backend in place of homes.
    pub(crate) fn node_locals(&self) -> impl Iterator<Item = (&Backend, bool)> {
        let without_home = self.without_home.iter().map(|backend| (backend, true));
        self.node_local.iter().map(|backend| (backend, false)).chain(without_home)
    }

    /// Returns every backend of sessions that live by heartbeats.
    pub fn with_heartbeats(&self) -> impl Iterator<Item = &Backend> {
        self.standby.iter().chain([&self.main])
    }
}
