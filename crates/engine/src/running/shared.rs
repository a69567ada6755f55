//! Builds the backends of a node in a cluster, and starts the workers of the failover protocol. A new backend
//! is an arm of `Building::backends`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use seatkeeper_core::Region;
use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_ledger::{Ledger, PostgresUrl};
use seatkeeper_registry::postgres::{PostgresClock, PostgresRegistry};
use seatkeeper_registry::redis::{self, RedisRegistry, RollCall};
use seatkeeper_registry::{ClockSteps, Epochs, Expiry as _, Rebuild, Store};

use super::node_local::node_local;
use super::on_record::OnRecord;
use super::{Built, Inputs, StartError};
use crate::backend::Backend;
use crate::commits::Commits;
use crate::endings::Endings;
use crate::failover::{
    Confirm, EpochLease, KnownEpochs, Membership, Probe, Reach, RebuildQueue, RebuildTargets, Rebuilder, Roll,
};
use crate::registries::Registries;
use crate::settings::{RedisSettings, Settings, SharedSettings, SharedStore};
use crate::worker::WorkerSet;
use crate::workers::{FillLasting, KeepClock};

/// The longest wait of a starting node for its buckets. After it, the node starts and answers 503 for the
/// remaining buckets.
const SERVED_WAIT_MAX: Duration = Duration::from_secs(10);

/// The longest wait for a Redis server to show its settings.
const FITNESS_WAIT_MAX: Duration = Duration::from_secs(2);

/// The interval between two looks at the buckets during the wait.
const SERVED_LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The lease of a bucket in Redis. A node that serves clients tries every half second to renew the lease, and
/// writes only where half of it is over.
const BUCKET_LEASE: Duration = Duration::from_secs(10);

/// The number of connections to the ledger's database for sessions served from it, besides the ledger's own.
const CONNECTIONS_MAX: u32 = 8;

/// The parts of a node in a cluster.
pub(super) struct Shared {
    built: Built,
    membership: Arc<Membership>,
    /// The clock of PostgreSQL's server; `None` if no registry is in PostgreSQL.
    postgres_clock: Option<Arc<PostgresClock>>,
    targets: RebuildTargets,
    /// The registry of capacities; `None` if the configured registry serves all kinds of pools.
    lasting: Option<Arc<PostgresRegistry>>,
    reach: Arc<Reach>,
    when_down: BucketMode,
}

/// The registries of live sessions.
struct Backends {
    main: Arc<dyn Rebuild>,
    /// The registry that serves in place of `main` during an outage; `None` without a PostgreSQL to take
    /// over.
    standby: Option<Arc<dyn Rebuild>>,
    /// The registry of capacities; `None` if `main` serves all kinds of pools.
    lasting: Option<Arc<PostgresRegistry>>,
    redis_clock: Option<Arc<ClockSteps>>,
    postgres_clock: Option<Arc<PostgresClock>>,
}

/// Inputs for building the backends.
struct Building<'a> {
    region: Region,
    journal_events_max: usize,
    ledger: &'a Ledger,
    known: &'a KnownEpochs,
    lease: &'a Arc<EpochLease>,
}

impl Shared {
    /// Connects to the store shared by all nodes. Returns `Err` if a Redis server has unfit settings. An
    /// unreachable server counts as fit.
    pub(super) async fn new(
        settings: &Settings,
        sharing: &SharedSettings,
        ledger: &Ledger,
    ) -> Result<Self, StartError> {
        let (known, reach) = (KnownEpochs::default(), Arc::new(Reach::default()));
        let is_ledgers = matches!(sharing.store, SharedStore::Postgres(_));
        let lease = Arc::new(EpochLease::shared(known.clone(), Arc::clone(&reach), is_ledgers));
        let journal_events_max = settings.journal_size();
        let region = settings.region;
        let building = Building { region, journal_events_max, ledger, known: &known, lease: &lease };
        let backends = building.backends(&sharing.store).await?;
        let registries = backends.registries(&known, settings).await?;
        let Backends { main, standby, lasting, redis_clock, postgres_clock } = backends;
        let of_postgres = postgres_clock.as_ref().map(|clock| (Store::PostgreSql, Arc::clone(clock.steps())));
        let of_redis = redis_clock.map(|steps| (Store::Redis, steps));
        let roll = match &sharing.store {
            SharedStore::Redis(redis) => Some(RollCall::new(redis.servers.clone())),
            SharedStore::Postgres(_) => None,
        };
        let name = sharing.node_name.clone();
        let membership = Arc::new(Membership::new(name, ledger.clone(), Arc::clone(&reach), roll));
        tracing::info!(
            node_id = %membership.id(),
            node_name = sharing.node_name,
            "this node goes on record among the nodes, under this id and name"
        );
        let when_down = if standby.is_some() { sharing.when_down } else { BucketMode::Deny };
        Ok(Self {
            built: Built {
                registries,
                lease,
                membership: Some(Arc::clone(&membership)),
                sole_use: None,
                clocks: of_postgres.into_iter().chain(of_redis).collect(),
            },
            membership,
            postgres_clock,
            targets: RebuildTargets { main, is_ledgers, standby, has_lasting: lasting.is_some() },
            lasting,
            reach,
            when_down,
        })
    }

    /// Starts the workers of the failover protocol, and waits up to [`SERVED_WAIT_MAX`] until all buckets are
    /// served, or the program stops.
    pub(super) async fn start(
        &self,
        ledger: &Ledger,
        upkeep: &WorkerSet,
        inputs: &Inputs,
        endings: &Arc<Endings>,
    ) {
        let Built { registries, lease, .. } = &self.built;
        let queue = Arc::new(RebuildQueue::default());
        upkeep.start(Confirm {
            lease: Arc::clone(lease),
            commits: registries.with_heartbeats().map(|backend| Arc::clone(&backend.commits)).collect(),
            membership: Arc::clone(&self.membership),
            endings: Arc::clone(endings),
        });
        upkeep.start(Roll { lease: Arc::clone(lease), membership: Arc::clone(&self.membership) });
        let (reach, rebuilt) = (Arc::clone(&self.reach), self.targets.clone());
        upkeep.start(Probe::new(rebuilt, Arc::clone(lease), reach, Arc::clone(&queue), self.when_down));
        upkeep.start(Rebuilder {
            targets: self.targets.clone(),
            ledger: ledger.clone(),
            lease: Arc::clone(lease),
            queue: Arc::clone(&queue),
            reach: Arc::clone(&self.reach),
            terms: Arc::clone(&inputs.terms),
            membership: Arc::clone(&self.membership),
            metrics: inputs.metrics.clone(),
            sole_user_silent_from: Mutex::default(),
        });
        if let Some(clock) = &self.postgres_clock {
            upkeep.start(KeepClock { clock: Arc::clone(clock), lease: Arc::clone(lease) });
        }
        let are_capacities_served = Arc::new(AtomicBool::new(self.lasting.is_none()));
        if let Some(lasting) = &self.lasting {
            upkeep.start(FillLasting {
                lasting: Arc::clone(lasting),
                ledger: ledger.clone(),
                terms: Arc::clone(&inputs.terms),
                lease: Arc::clone(lease),
                is_served: Arc::clone(&are_capacities_served),
            });
        }
        inputs.stopping.run_until_cancelled(wait_until_served(&queue, &are_capacities_served)).await;
    }

    /// Returns the parts for the engine.
    pub(super) fn built(self) -> Built {
        self.built
    }
}

/// Waits up to [`SERVED_WAIT_MAX`] until all buckets and the capacities are served.
async fn wait_until_served(queue: &RebuildQueue, are_capacities_served: &AtomicBool) {
    let served = async {
        while !queue.are_met() || !are_capacities_served.load(Ordering::Acquire) {
            tokio::time::sleep(SERVED_LOOK_INTERVAL).await;
        }
    };
    if tokio::time::timeout(SERVED_WAIT_MAX, served).await.is_err() {
        tracing::error!(
            "not all buckets are served yet: their requests are answered 503 until a rebuild is done; check Redis and PostgreSQL if this lasts"
        );
    }
}

impl Building<'_> {
    async fn backends(&self, store: &SharedStore) -> Result<Backends, StartError> {
        match store {
            SharedStore::Redis(redis) => self.in_redis(redis).await,
            SharedStore::Postgres(url) => {
                let main = self.in_postgres(url, &self.known.main).await?;
                Ok(Backends {
                    redis_clock: None,
                    postgres_clock: Some(Arc::clone(main.clock())),
                    lasting: Some(self.lasting(&main)),
                    main: Arc::new(main),
                    standby: None,
                })
            }
        }
    }

    async fn in_redis(&self, settings: &RedisSettings) -> Result<Backends, StartError> {
        let servers = &settings.servers;
        if let Some(why) = servers.unfit(FITNESS_WAIT_MAX).await.into_iter().next() {
            return Err(StartError::Unfit(why));
        }
        let kept = redis::Settings {
            region: self.region,
            journal_events_max: self.journal_events_max,
            wait_replicas: settings.wait_replicas,
            lease: Some(BUCKET_LEASE),
            sessions_remembered_max: settings.sessions_remembered_max,
            ..redis::Settings::default()
        };
        let locator = Arc::new(OnRecord { ledger: self.ledger.clone(), lease: Arc::clone(self.lease) });
        let main = RedisRegistry::new(servers.clone(), kept, Arc::clone(&self.known.main), locator);
        let main = main.with_journals_over(servers.anew());
        let standby = match &settings.standby {
            Some(url) => Some(self.in_postgres(url, &self.known.standby).await?),
            None => None,
        };
        Ok(Backends {
            redis_clock: Some(Arc::clone(main.clock_steps())),
            postgres_clock: standby.as_ref().map(|standby| Arc::clone(standby.clock())),
            main: Arc::new(main),
            lasting: standby.as_ref().map(|standby| self.lasting(standby)),
            standby: standby.map(|standby| Arc::new(standby) as _),
        })
    }

    /// Connects to a registry in the ledger's database.
    async fn in_postgres(
        &self,
        url: &PostgresUrl,
        epochs: &Arc<Epochs>,
    ) -> Result<PostgresRegistry, StartError> {
        let (epochs, events_max) = (Arc::clone(epochs), self.journal_events_max);
        Ok(PostgresRegistry::connect(url, CONNECTIONS_MAX, epochs, self.region, events_max).await?)
    }

    /// Returns the registry of sessions without heartbeats, over the connections of `beside`.
    fn lasting(&self, beside: &PostgresRegistry) -> Arc<PostgresRegistry> {
        Arc::new(beside.lasting(Arc::clone(&self.known.all)))
    }
}

impl Backends {
    /// Returns the registries of a node over these backends.
    async fn registries(&self, known: &KnownEpochs, settings: &Settings) -> Result<Registries, StartError> {
        let commits = || Commits::new(settings.journal_events_max);
        let backend = |registry: &Arc<dyn Rebuild>, epochs: &Arc<Epochs>| {
            Backend::rebuilt(Arc::clone(registry) as _, commits(), Arc::clone(epochs))
        };
        let node_local = match self.lasting.as_ref().filter(|_| self.standby.is_some()) {
            Some(lasting) => Some(node_local(settings.region, lasting.now().await?)),
            None => None,
        };
        Ok(Registries {
            main: backend(&self.main, &known.main),
            standby: self.standby.as_ref().map(|standby| backend(standby, &known.standby)),
            node_local,
            without_home: None,
            lasting: self.lasting.clone().map(|lasting| Backend::lasting(lasting as _, commits())),
        })
    }
}
