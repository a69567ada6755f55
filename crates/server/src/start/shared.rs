//! A registry that several nodes share, and what keeps it in step with the ledger.

use std::sync::Arc;
use std::time::Duration;

use seatkeeper_core::{Region, RegistryTime};
use seatkeeper_ledger::{BucketMode, Ledger};
use seatkeeper_redis::Servers;
use seatkeeper_registry::memory::MemoryRegistry;
use seatkeeper_registry::postgres::{PostgresClock, PostgresRegistry};
use seatkeeper_registry::redis::{self, RedisRegistry, RollCall};
use seatkeeper_registry::{ClockSteps, Epochs, MonotonicClock, Rebuild, Registry, Store};

use super::StartError;
use super::on_record::OnRecord;
use crate::engine::{Commits, Registries, Station};
use crate::failover::{
    Confirm, EpochLease, Known, Membership, Needs, Probe, Reach, Rebuilder, Rebuilt, Roll,
};
use crate::metrics::Metrics;
use crate::settings::{DevicesWhenDown, Settings, WhenDown};
use crate::workers::{Crew, KeepClock, Recorder};

/// How long a node waits at its start for the buckets to be served. Then it listens all the same, and answers 503.
const SERVED_WAIT_MAX: Duration = Duration::from_secs(10);

/// How long it waits for a server that may be unfit.
const FITNESS_WAIT_MAX: Duration = Duration::from_secs(2);

/// How often it looks.
const SERVED_LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The lease of a bucket in Redis. A node that serves clients renews it every half
/// second where half of it is over.
const BUCKET_LEASE: Duration = Duration::from_secs(10);

/// Connections to the ledger's database for the sessions that are served from it, beside the ledger's own.
const CONNECTIONS_MAX: u32 = 8;

/// Events that may wait of what this node decides alone.
const ALONE_EVENTS_MAX: usize = 10_000;

/// Places in that journal are in one epoch as long as the process lives.
const ALONE_EPOCH: u64 = 1;

/// What serves, and this node among others.
pub(super) struct Shared {
    pub(super) registries: Registries,
    pub(super) lease: Arc<EpochLease>,
    pub(super) membership: Arc<Membership>,
    /// The steps of the clocks of each store.
    pub(super) clocks: Vec<(Store, Arc<ClockSteps>)>,
    /// `None`: no registry is in PostgreSQL.
    postgres_clock: Option<Arc<PostgresClock>>,
    rebuilt: Rebuilt,
    reach: Arc<Reach>,
    when_down: BucketMode,
}

/// Where live sessions are.
struct Backends {
    main: Arc<dyn Rebuild>,
    /// None: nothing takes its place.
    standby: Option<Arc<dyn Rebuild>>,
    /// None: it serves all kinds.
    lasting: Option<Arc<dyn Registry>>,
    redis_clock: Option<Arc<ClockSteps>>,
    postgres_clock: Option<Arc<PostgresClock>>,
}

impl Shared {
    /// What nodes share by these settings; none: this server is alone.
    /// Redis servers must be fit for it; those that cannot be reached are given the benefit of the doubt.
    pub(super) async fn of(
        settings: &Settings,
        servers: Option<Servers>,
        ledger: &Ledger,
        recorder: &Recorder,
    ) -> Result<Option<Self>, StartError> {
        let known = Known::default();
        let roll = servers.clone().map(RollCall::new);
        let reach = Arc::new(Reach::default());
        let is_ledgers = settings.registry.is_ledgers();
        let lease = Arc::new(EpochLease::shared(known.clone(), Arc::clone(&reach), is_ledgers));
        let Some(backends) = Backends::of(settings, servers, ledger, recorder, &known, &lease).await? else {
            return Ok(None);
        };
        let Backends { main, standby, lasting, redis_clock, postgres_clock } = backends;
        let of_postgres = postgres_clock.as_ref().map(|clock| (Store::PostgreSql, Arc::clone(clock.steps())));
        let of_redis = redis_clock.map(|steps| (Store::Redis, steps));
        let commits = || Commits::new(settings.registry.journal_events_max);
        let station = |registry: &Arc<dyn Rebuild>, epochs: &Arc<Epochs>| {
            Station::rebuilt(Arc::clone(registry) as _, commits(), Arc::clone(epochs))
        };
        let registries = Registries {
            main: station(&main, &known.main),
            standby: standby.as_ref().map(|standby| station(standby, &known.standby)),
            alone: match lasting.as_ref().filter(|_| standby.is_some()) {
                Some(lasting) => Some(alone(lasting.now().await?)),
                None => None,
            },
            lasting: lasting.map(|lasting| Station::lasting(lasting, commits())),
        };
        let has_lasting = registries.lasting.is_some();
        let when_down = match settings.registry.when_down {
            WhenDown::Ledger if standby.is_some() => match settings.devices.when_down {
                DevicesWhenDown::Deny => BucketMode::Ledger,
                DevicesWhenDown::Allow => BucketMode::Allow,
            },
            WhenDown::Ledger | WhenDown::Deny => BucketMode::Deny,
        };
        let name = settings.server.listen.to_string();
        Ok(Some(Self {
            registries,
            lease,
            membership: Arc::new(Membership::new(name, ledger.clone(), Arc::clone(&reach), roll)),
            clocks: of_postgres.into_iter().chain(of_redis).collect(),
            postgres_clock,
            rebuilt: Rebuilt { main, is_ledgers, standby, has_lasting },
            reach,
            when_down,
        }))
    }

    /// Starts what keeps registries and ledger in step, and waits until all is served, but not for long.
    pub(super) async fn start(&self, settings: &Settings, ledger: &Ledger, upkeep: &Crew, metrics: &Metrics) {
        let needs = Arc::new(Needs::default());
        let rebuilt = self.registries.all().filter(|station| station.is_rebuilt());
        upkeep.start(Confirm {
            lease: Arc::clone(&self.lease),
            commits: rebuilt.map(|station| Arc::clone(&station.commits)).collect(),
            membership: Arc::clone(&self.membership),
        });
        upkeep.start(Roll { lease: Arc::clone(&self.lease), membership: Arc::clone(&self.membership) });
        let (lease, reach) = (Arc::clone(&self.lease), Arc::clone(&self.reach));
        let rebuilt = self.rebuilt.clone();
        upkeep.start(Probe::new(rebuilt, lease, reach, Arc::clone(&needs), self.when_down));
        upkeep.start(Rebuilder {
            rebuilt: self.rebuilt.clone(),
            ledger: ledger.clone(),
            lease: Arc::clone(&self.lease),
            needs: Arc::clone(&needs),
            settings: settings.clone(),
            membership: Arc::clone(&self.membership),
            metrics: metrics.clone(),
        });
        if let Some(clock) = &self.postgres_clock {
            upkeep.start(KeepClock { clock: Arc::clone(clock), lease: Arc::clone(&self.lease) });
        }
        let served = async {
            while !needs.are_met() {
                tokio::time::sleep(SERVED_LOOK_INTERVAL).await;
            }
        };
        if tokio::time::timeout(SERVED_WAIT_MAX, served).await.is_err() {
            tracing::error!("not all buckets are served yet; requests are answered 503 until they are");
        }
    }
}

impl Backends {
    async fn of(
        settings: &Settings,
        servers: Option<Servers>,
        ledger: &Ledger,
        recorder: &Recorder,
        known: &Known,
        lease: &Arc<EpochLease>,
    ) -> Result<Option<Self>, StartError> {
        let lasting = |beside: &PostgresRegistry| Arc::new(beside.lasting(Arc::clone(&known.all))) as _;
        if let Some(servers) = servers {
            if let Some(why) = servers.unfit(FITNESS_WAIT_MAX).await.into_iter().next() {
                return Err(StartError::Unfit(why));
            }
            let journal_events_max = journal_events_max(settings);
            let wait_replicas = settings.registry.wait_replicas;
            let kept = redis::Settings {
                journal_events_max,
                wait_replicas,
                lease: Some(BUCKET_LEASE),
                sessions_remembered_max: count(settings.registry.sessions_remembered_max),
                ..redis::Settings::default()
            };
            let finder = Arc::new(OnRecord { ledger: ledger.clone(), lease: Arc::clone(lease) });
            let main = RedisRegistry::new(servers.clone(), kept, Arc::clone(&known.main), finder);
            let main = {
                let _there = recorder.runtime().enter();
                main.with_journals_over(servers.anew())
            };
            let standby = in_ledger(settings, &known.standby).await?;
            return Ok(Some(Self {
                redis_clock: Some(Arc::clone(main.clock_steps())),
                postgres_clock: standby.as_ref().map(|standby| Arc::clone(standby.clock())),
                main: Arc::new(main),
                lasting: standby.as_ref().map(lasting),
                standby: standby.map(|standby| Arc::new(standby) as _),
            }));
        }
        if !settings.registry.is_ledgers() {
            return Ok(None);
        }
        let main = in_ledger(settings, &known.main).await?;
        Ok(main.map(|main| Self {
            redis_clock: None,
            postgres_clock: Some(Arc::clone(main.clock())),
            lasting: Some(lasting(&main)),
            main: Arc::new(main),
            standby: None,
        }))
    }
}

/// This node's own memory, which begins at this time.
fn alone(now: RegistryTime) -> Station {
    let clock = MonotonicClock::starting_at(now);
    let registry = MemoryRegistry::new(ALONE_EPOCH, Region::default(), ALONE_EVENTS_MAX, clock);
    Station::alone(Arc::new(registry), Commits::new(ALONE_EVENTS_MAX as u64))
}

/// The registry in the ledger's database; none if that is not a PostgreSQL.
async fn in_ledger(
    settings: &Settings,
    epochs: &Arc<Epochs>,
) -> Result<Option<PostgresRegistry>, StartError> {
    let Some(url) = settings.ledger.postgres()? else { return Ok(None) };
    let epochs = Arc::clone(epochs);
    let registry = PostgresRegistry::connect(
        &url,
        CONNECTIONS_MAX,
        epochs,
        Region::default(),
        journal_events_max(settings),
    );
    Ok(Some(registry.await?))
}

fn journal_events_max(settings: &Settings) -> usize {
    count(settings.registry.journal_events_max)
}

fn count(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
