//! Which registry serves what.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use parking_lot::Mutex;
use seatkeeper_core::{Bucket, PoolKind};
use seatkeeper_ledger::BucketMode;
use seatkeeper_registry::{Epochs, Registry};

use crate::commits::Commits;
use crate::failover::{Place, place_of};

/// Sessions that a node takes in alone; nobody else is admitted there then.
const ALONE_SESSIONS_MAX: usize = 10_000;

/// A registry, and how far the ledger has come with its journal.
#[derive(Clone)]
pub struct Station {
    /// The registry.
    pub registry: Arc<dyn Registry>,
    /// The progress of the ledger with the registry's journal.
    pub commits: Arc<Commits>,
    /// When its sweeper last had nothing left to do; none: it never had, or there is none.
    pub swept: Arc<Mutex<Option<Instant>>>,
    footing: Footing,
}

/// What a registry's answers rest on.
#[derive(Clone)]
enum Footing {
    /// It always serves, for nobody can take its place.
    Lasting,
    /// It serves in these epochs.
    Rebuilt(Arc<Epochs>),
    /// It is this node's own and knows of nobody else; so many sessions of it are on record and not over.
    Alone(Arc<AtomicUsize>),
}

impl Station {
    /// A registry whose place nobody takes.
    pub fn lasting(registry: Arc<dyn Registry>, commits: Commits) -> Self {
        Self { registry, commits: Arc::new(commits), swept: Arc::default(), footing: Footing::Lasting }
    }

    /// A registry that serves in these epochs.
    pub fn rebuilt(registry: Arc<dyn Registry>, commits: Commits, epochs: Arc<Epochs>) -> Self {
        Self {
            registry,
            commits: Arc::new(commits),
            swept: Arc::default(),
            footing: Footing::Rebuilt(epochs),
        }
    }

    /// An empty registry by which this node decides alone.
    pub fn alone(registry: Arc<dyn Registry>, commits: Commits) -> Self {
        Self {
            registry,
            commits: Arc::new(commits),
            swept: Arc::default(),
            footing: Footing::Alone(Arc::default()),
        }
    }

    /// Whether another registry can take its place, so that what it says holds for an epoch alone.
    pub fn is_rebuilt(&self) -> bool {
        matches!(self.footing, Footing::Rebuilt(_))
    }

    /// Whether it knows nothing but what this node decided.
    pub fn is_alone(&self) -> bool {
        matches!(self.footing, Footing::Alone(_))
    }

    /// Whether it serves any bucket now.
    pub fn serves_any(&self) -> bool {
        match &self.footing {
            Footing::Rebuilt(epochs) => Bucket::all().any(|bucket| epochs.of(bucket) != Epochs::NONE),
            Footing::Lasting | Footing::Alone(_) => true,
        }
    }

    /// Whether it may take one more in.
    pub fn has_room(&self) -> bool {
        match &self.footing {
            Footing::Alone(sessions) => sessions.load(Relaxed) < ALONE_SESSIONS_MAX,
            Footing::Lasting | Footing::Rebuilt(_) => true,
        }
    }

    /// Counts sessions that came on record of one that is alone. Nobody ends before he began.
    pub fn lives(&self, admitted: usize, ended: usize) {
        if let Footing::Alone(sessions) = &self.footing {
            sessions.fetch_add(admitted, Relaxed);
            sessions.fetch_sub(ended, Relaxed);
        }
    }
}

/// The registries of a server.
#[derive(Clone)]
pub struct Registries {
    /// The one that is configured.
    pub main: Station,
    /// What serves in its place while it is out of reach, if anything does.
    pub standby: Option<Station>,
    /// What serves sessions that last; none: the main one, and nothing while that is out of reach.
    pub lasting: Option<Station>,
    /// This node's memory, where nodes may decide alone while the main one is out of reach.
    pub alone: Option<Station>,
}

impl Registries {
    /// The one registry of a server that has no others beside it.
    pub fn only(registry: Arc<dyn Registry>, commits: Commits) -> Self {
        Self { main: Station::lasting(registry, commits), standby: None, lasting: None, alone: None }
    }

    /// What serves pools of this kind in buckets of this mode; none: they are denied.
    pub fn of(&self, kind: PoolKind, mode: BucketMode) -> Option<&Station> {
        match place_of(kind, mode) {
            Place::Main => Some(&self.main),
            Place::Standby => self.standby.as_ref(),
            Place::Lasting => Some(self.for_capacities()),
            Place::Alone => self.alone.as_ref(),
            Place::Nowhere => None,
        }
    }

    /// What serves capacities, and tells the time to all that is not decided by a registry.
    pub fn for_capacities(&self) -> &Station {
        self.lasting.as_ref().unwrap_or(&self.main)
    }

    /// Says that the time comes from this process: no other registry's clock could be set.
    pub fn has_own_clock(&self) -> bool {
        matches!(self.for_capacities().footing, Footing::Lasting) && self.lasting.is_none()
    }

    /// Whether a station of these is that of the registry that is configured.
    pub fn is_main(&self, station: &Station) -> bool {
        Arc::ptr_eq(&station.commits, &self.main.commits)
    }

    /// All whose sessions are those of the ledger.
    pub fn all(&self) -> impl Iterator<Item = &Station> {
        self.lasting.iter().chain(self.with_heartbeats())
    }

    /// Those of them whose sessions are kept alive by heartbeats.
    pub fn with_heartbeats(&self) -> impl Iterator<Item = &Station> {
        self.standby.iter().chain([&self.main])
    }
}
