//! Starts an engine with its workers, and stops both. Only this module and its submodules choose a backend of
//! the registry.

mod embedded;
mod node_local;
mod on_record;
mod shared;
mod sole_use;

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_core::RegistryTime;
use seatkeeper_ledger::node_local::LoneNode;
use seatkeeper_ledger::{Ledger, SoleUse};
use seatkeeper_registry::{ClockSteps, MonotonicClock, Store, TimeSource};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::commits::Commits;
use crate::endings::Endings;
use crate::engine::{Engine, OnLeft, Parts};
use crate::failover::{EpochLease, Membership};
use crate::metrics::Metrics;
use crate::registries::Registries;
use crate::settings::{Settings, SharedStore, Topology};
use crate::terms::TermsSource;
use crate::worker::WorkerSet;
use crate::workers::{
    Drain, Flush, KeepSoleUse, NodeLocalDrain, OnRecorded, Reconcile, Refusals, Sweep, WatchClocks,
};
use node_local::node_local;
use shared::Shared;

/// The interval between two sweeps of the node-local sessions.
const NODE_LOCAL_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// The reason why an engine did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The ledger cannot be used.
    #[error("the ledger cannot be used")]
    Ledger(#[from] seatkeeper_ledger::Error),
    /// The registry cannot be filled with the live sessions.
    #[error("the live sessions could not be put back")]
    Registry(#[from] seatkeeper_registry::Error),
    /// A Redis server has settings that could lose sessions.
    #[error("the Redis that nodes share cannot be used: {0}")]
    Unfit(String),
    /// Nodes that shared a registry have left changes of capacities in PostgreSQL that are not on record.
    #[error(
        "{waiting} changes of capacities by the nodes that used this ledger before are not on record: start a node again \
         with the settings of those nodes, wait until its metric journal_depth is 0, and stop the node"
    )]
    CapacitiesWait {
        /// The number of changes.
        waiting: u64,
    },
}

/// Time limit for closing the connections to the ledger. A ledger that hangs must not keep a node from stopping.
const CLOSE_MAX: Duration = Duration::from_secs(5);

/// Inputs supplied by the program.
pub struct Inputs {
    /// The entitlements of pools.
    pub terms: Arc<dyn TermsSource>,
    /// The metrics that the engine fills.
    pub metrics: Metrics,
    /// The callback for events of journals that other nodes do not read; `None` without a listener.
    pub on_recorded: Option<OnRecorded>,
    /// The callback for shares of sessions given up at this node; `None` without a listener.
    pub on_left: Option<OnLeft>,
    /// Cancelled once the program stops. A start then waits no longer until all buckets are served, and the engine is there to
    /// be stopped.
    pub stopping: CancellationToken,
}

/// An engine with the workers behind it.
pub struct RunningEngine {
    engine: Arc<Engine>,
    started_at: RegistryTime,
    clocks: Vec<(Store, Arc<ClockSteps>)>,
    upkeep: WorkerSet,
    drainage: WorkerSet,
    membership: Option<Arc<Membership>>,
    sole_use: Option<Arc<SoleUse>>,
    taken_over: CancellationToken,
    ledger: Ledger,
    /// The connections of the drains to the ledger.
    written: Ledger,
}

/// The parts of an engine built before the workers start.
struct Built {
    registries: Registries,
    lease: Arc<EpochLease>,
    membership: Option<Arc<Membership>>,
    /// The sole use of the ledger; `None` for a node in a cluster.
    sole_use: Option<Arc<SoleUse>>,
    clocks: Vec<(Store, Arc<ClockSteps>)>,
}

impl RunningEngine {
    /// Starts an engine over `ledger`: restores the sessions that are live in the ledger, each with a full
    /// TTL, and starts the workers. The time of an embedded engine is the clock of this process, never before
    /// the latest time in the ledger.
    pub async fn start(ledger: Ledger, settings: &Settings, inputs: Inputs) -> Result<Self, StartError> {
        Self::start_with_clock(ledger, settings, inputs, MonotonicClock::starting_at).await
    }

    /// Starts an engine like [`start`](Self::start). `clock` makes the clock of an embedded engine for the
    /// given start: a simulation supplies a manual clock.
    pub async fn start_with_clock<C: TimeSource>(
        ledger: Ledger,
        settings: &Settings,
        inputs: Inputs,
        clock: impl FnOnce(RegistryTime) -> C,
    ) -> Result<Self, StartError> {
        let (upkeep, drainage) = (WorkerSet::new(), WorkerSet::new());
        let endings = Arc::new(Endings::default());
        let mut built = match &settings.topology {
            Topology::Embedded => embedded(settings, &ledger, &inputs, &upkeep, clock).await?,
            Topology::Shared(sharing) => {
                sole_use::wait_for_sole_user(&ledger).await?;
                let shared = Shared::new(settings, sharing, &ledger).await?;
                shared.start(&ledger, &upkeep, &inputs, &endings).await;
                shared.built()
            }
        };
        let started_at = match built.registries.for_capacities().registry.now().await {
            Ok(now) => now,
            Err(error) => {
                upkeep.stop().await;
                // By now a node is on record among the nodes.
                if let Some(membership) = &built.membership {
                    membership.left().await;
                }
                return Err(error.into());
            }
        };
        if settings.admits_without_home {
            built.registries.without_home = Some(node_local(settings.region, started_at));
        }
        let written = ledger.apart();
        let starting = Starting { settings, ledger: &ledger, built: &built, inputs: &inputs };
        starting.drains(&drainage, &written, &endings);
        starting.flushes(&upkeep, started_at);
        starting.sweeps(&upkeep);
        let engine = starting.engine(endings, &upkeep);
        let Built { lease, membership, sole_use, clocks, .. } = built;
        let taken_over = CancellationToken::new();
        if let Some(sole_use) = sole_use.clone().filter(|sole_use| sole_use.may_be_lost()) {
            upkeep.start(KeepSoleUse::new(sole_use, lease, taken_over.clone()));
        }
        Ok(Self {
            engine,
            started_at,
            clocks,
            upkeep,
            drainage,
            membership,
            sole_use,
            taken_over,
            ledger,
            written,
        })
    }

    /// Returns the engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Returns the registry's time at the start.
    pub fn started_at(&self) -> RegistryTime {
        self.started_at
    }

    /// Returns the clock steps of each store used as a clock, or of this host if this process tells the time.
    pub fn clock_steps(&self) -> &[(Store, Arc<ClockSteps>)] {
        &self.clocks
    }

    /// Returns the set for further workers of the program. Workers of this set stop before the drains do.
    pub fn workers(&self) -> &WorkerSet {
        &self.upkeep
    }

    /// Returns the token that is cancelled once the ledger of an embedded engine is no longer its own: another process has
    /// taken the ledger, or a copy has taken its place. The program stops the engine then: its decisions no longer count.
    pub fn taken_over(&self) -> &CancellationToken {
        &self.taken_over
    }

    /// Stops the workers, commits the remaining events, and closes the ledger.
    pub async fn stop(self) {
        self.upkeep.stop().await;
        self.drainage.stop().await;
        if self.sole_use.is_some() {
            self.tell_of_lost_events();
        }
        if let Some(membership) = &self.membership {
            membership.left().await;
        }
        let closed = async {
            self.written.close().await;
            self.ledger.close().await;
            if let Some(sole_use) = &self.sole_use {
                sole_use.end().await;
            }
        };
        if tokio::time::timeout(CLOSE_MAX, closed).await.is_err() {
            tracing::warn!(
                "the ledger's connections did not close in time: the ledger closes them by itself"
            );
        }
    }

    /// Logs the events of an embedded engine that are not in the ledger after the last commit: the journal ends with
    /// the process.
    fn tell_of_lost_events(&self) {
        let registries = self.engine.registries().all();
        let events: usize = registries.map(|backend| backend.registry.journal_depth()).sum();
        if events > 0 {
            tracing::error!(
                events,
                is_taken_over = self.taken_over.is_cancelled(),
                "events of sessions never reached the ledger, and are lost with this process: sessions admitted by \
                 them are unknown to the next process, and sessions ended by them live on there for a TTL; only \
                 answers with `durability = journal` rested on them; make sure that one process uses the ledger, or \
                 set devices.durability = \"ledger\""
            );
        }
    }
}

/// Builds an engine with its sessions in the memory of this process.
async fn embedded<C: TimeSource>(
    settings: &Settings,
    ledger: &Ledger,
    inputs: &Inputs,
    upkeep: &WorkerSet,
    clock: impl FnOnce(RegistryTime) -> C,
) -> Result<Built, StartError> {
    let (sole_use, taken) = sole_use::take_alone(ledger).await?;
    embedded::close_shared_capacities(ledger).await?;
    let recorded = ledger.last_time().await?.unwrap_or_default();
    let clock = clock(embedded::first_time(recorded));
    let (place, size) = ((settings.region, sole_use.epoch()), settings.journal_size());
    let may_be_takeover = sole_use.may_be_lost();
    let registry =
        embedded::filled_registry(place, size, ledger, &*inputs.terms, clock, may_be_takeover).await?;
    let host_clock = Arc::new(ClockSteps::default());
    upkeep.start(WatchClocks::new(Arc::clone(&registry), Arc::clone(&host_clock)));
    let lease = if sole_use.may_be_lost() { EpochLease::owned(taken) } else { EpochLease::unshared() };
    Ok(Built {
        registries: Registries::only(registry, Commits::new(settings.journal_events_max)),
        lease: Arc::new(lease),
        membership: None,
        sole_use: Some(Arc::new(sole_use)),
        clocks: vec![(Store::Memory, host_clock)],
    })
}

/// An engine during the start of its workers.
struct Starting<'a> {
    settings: &'a Settings,
    ledger: &'a Ledger,
    built: &'a Built,
    inputs: &'a Inputs,
}

impl Starting<'_> {
    /// Starts the drains, which commit events over the connections of `written`.
    fn drains(&self, drainage: &WorkerSet, written: &Ledger, endings: &Arc<Endings>) {
        let registries = &self.built.registries;
        for backend in registries.all() {
            let is_main = Arc::ptr_eq(&backend.commits, &registries.main.commits);
            let on_recorded = self.inputs.on_recorded.clone().filter(|_| !is_main || !self.is_over_redis());
            drainage.start(Drain {
                backend: backend.clone(),
                ledger: written.clone(),
                endings: Arc::clone(endings),
                on_recorded,
                lease: Arc::clone(&self.built.lease),
                metrics: self.inputs.metrics.changes.clone(),
                gives_way: Default::default(),
                refusals: Refusals::default(),
            });
        }
        let membership = self.built.membership.as_ref();
        let id = membership.map_or_else(Uuid::new_v4, |membership| membership.id());
        for (backend, without_home) in registries.node_locals() {
            let (backend, ledger) = (backend.clone(), self.ledger.clone());
            drainage.start(NodeLocalDrain { backend, ledger, node: LoneNode { id, without_home } });
        }
    }

    /// Returns whether the main registry is in Redis. Every node then reads the ledger's progress with the journal there.
    fn is_over_redis(&self) -> bool {
        match &self.settings.topology {
            Topology::Embedded => false,
            Topology::Shared(sharing) => matches!(sharing.store, SharedStore::Redis(_)),
        }
    }

    /// Starts the workers that flush heartbeats from `now` on.
    fn flushes(&self, upkeep: &WorkerSet, now: RegistryTime) {
        for backend in self.built.registries.with_heartbeats() {
            let (since, interval) = (backend.flushes_since(now), self.settings.heartbeat_flush_interval);
            upkeep.start(Flush::new(backend.clone(), self.ledger.clone(), interval, since));
        }
    }

    /// Starts the sweepers.
    fn sweeps(&self, upkeep: &WorkerSet) {
        for (backend, _) in self.built.registries.node_locals() {
            upkeep.start(Sweep::new(backend.clone(), NODE_LOCAL_SWEEP_INTERVAL));
        }
        if let Some(interval) = self.settings.sweep_interval {
            for backend in self.built.registries.all() {
                upkeep.start(Sweep::new(backend.clone(), interval));
            }
        }
    }

    /// Builds the engine, and starts the worker that applies changed entitlements to live sessions.
    fn engine(&self, endings: Arc<Endings>, upkeep: &WorkerSet) -> Arc<Engine> {
        let engine = Arc::new(Engine::new(Parts {
            registries: self.built.registries.clone(),
            ledger: self.ledger.clone(),
            endings,
            lease: Arc::clone(&self.built.lease),
            metrics: self.inputs.metrics.claims.clone(),
            commit_timeout: self.settings.commit_timeout,
            region: self.settings.region,
            on_left: self.inputs.on_left.clone(),
        }));
        upkeep.start(Reconcile {
            engine: Arc::clone(&engine),
            ledger: self.ledger.clone(),
            terms: Arc::clone(&self.inputs.terms),
            looked: Default::default(),
        });
        engine
    }
}
