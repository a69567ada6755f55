//! Builds and starts the server: the engine, the listeners, and the background workers.

mod engine_settings;
mod listeners;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use seatkeeper_core::{Region, RegistryTime, Span};
use seatkeeper_engine::{Endings, Engine, Inputs, RunningEngine, WorkerSet};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::homes::OwnRegion;
use seatkeeper_redis::Servers;
use seatkeeper_registry::{MonotonicClock, TimeSource};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::{App, Parts};
use crate::auth::{KeyError, Verifier};
use crate::bearer::{BearerToken, TokenFileError};
use crate::edge::{CertificateError, Edge, Files};
use crate::entitlements::{
    EndTeller, EndedAbroad, Entitlements, Licenses, Listener, NoticeReader, Others, PolicyReader, PoolTerms,
    Subscribers,
};
use crate::error::Error as RequestError;
use crate::flood::Flood;
use crate::holders::Holders;
use crate::jobs::{self, Roster};
use crate::limits::Limits;
use crate::metrics::{Books, Looks, Metrics, MetricsAccess, MetricsPage, Node, Redis};
use crate::regions::{MovedHomesReader, NumberChecker, RecordReader, Regions};
use crate::release_codes::{ReleaseCodes, ReleaseKeyReader};
use crate::relocation::{MoveJob, Mover, Openings};
use crate::router::{metrics_router, router};
use crate::settings::{InvalidSetting, MetricsSettings, Settings};
use crate::usage::{HttpSink, Metering, SinkError};
use engine_settings::engine_settings;
use listeners::Listeners;

/// The reason why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting is invalid.
    #[error("a setting does not fit")]
    Settings(#[from] InvalidSetting),
    /// The ledger cannot be used.
    #[error("the ledger cannot be used")]
    Ledger(#[from] seatkeeper_ledger::Error),
    /// The engine did not start.
    #[error(transparent)]
    Engine(#[from] seatkeeper_engine::StartError),
    /// No key for the verification of tokens is available.
    #[error("there is no key to check tokens with")]
    Key(#[from] KeyError),
    /// A key file of the section `[region]` cannot be used.
    #[error("the keys of [region] cannot be used")]
    Region(#[source] KeyError),
    /// The ledger belongs to another region than the settings name.
    #[error(
        "the ledger is region {recorded}'s, and the settings name region {named}: give each region its own ledger"
    )]
    OtherRegion {
        /// The region on record.
        recorded: Region,
        /// The region of the settings.
        named: Region,
    },
    /// The ledger belongs to a region, and the settings have no region.
    #[error(
        "the ledger is region {recorded}'s, and the settings have no region.number: give this process the section [region] \
         of its region"
    )]
    Unnumbered {
        /// The region on record.
        recorded: Region,
    },
    /// A peer knows a rival, a second deployment with the number of the region.
    #[error(
        "region {peer} knows another deployment as region {own}, or has adopted region {own}: give this deployment a \
         region.number and a key of its own; if it stands in for a lost one, adopt the lost one's backup with `seatkeeper region \
         adopt`; if this is the true one, see `seatkeeper repair region {own}` for the ledger of region {peer}"
    )]
    NumberTaken {
        /// This region.
        own: Region,
        /// The peer.
        peer: Region,
    },
    /// Another region has adopted this region.
    #[error("region {successor} has adopted this region, and has its pools: this ledger serves no more")]
    Adopted {
        /// The region with the pools.
        successor: Region,
    },
    /// No client can be made for the sink of usage.
    #[error("usage cannot be brought to the sink")]
    Sink(#[from] SinkError),
    /// The file has no token for scrapes of metrics.
    #[error("the token of metrics.token_file cannot be used")]
    MetricsToken(#[from] TokenFileError),
    /// The server certificate cannot be used.
    #[error("the certificate of server.tls_cert_file cannot be used")]
    Certificate(#[from] CertificateError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error of the operating system.
        #[source]
        source: std::io::Error,
    },
}

/// A running server.
pub struct Running {
    /// The address of the listener, with the port chosen by the system.
    pub addr: SocketAddr,
    /// The address of the listener for metrics alone, with the port chosen by the system.
    pub metrics_addr: Option<SocketAddr>,
    served: JoinHandle<()>,
}

impl Running {
    /// Waits until the server has stopped: requests answered, records written, ledger closed.
    pub async fn finished(self) {
        if let Err(error) = self.served.await {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "the server's task broke off; the shutdown is incomplete"
            );
        }
    }
}

/// Starts a server: opens the ledger, restores the live sessions on record, and listens. The server stops
/// when `shutdown` is cancelled.
pub async fn start(settings: Settings, shutdown: CancellationToken) -> Result<Running, StartError> {
    start_by(settings, shutdown, MonotonicClock::starting_at).await
}

/// Starts a server whose registry takes the time from `clock`, for tests that simulate months. `clock` must
/// not be behind the newest time on record.
pub async fn start_with_clock(
    settings: Settings,
    shutdown: CancellationToken,
    clock: impl TimeSource,
) -> Result<Running, StartError> {
    start_by(settings, shutdown, |_| clock).await
}

/// Starts a server. `clock` gets the time at which the registry's clock has to start.
async fn start_by<C: TimeSource>(
    settings: Settings,
    shutdown: CancellationToken,
    clock: impl FnOnce(RegistryTime) -> C,
) -> Result<Running, StartError> {
    settings.check()?;
    let location = settings.ledger.location()?;
    let ledger = Ledger::open(seatkeeper_ledger::Settings::new(location.clone())).await?;
    let own_region = check_region(&settings, &ledger).await?;
    let verifier = Verifier::new(&settings)?;
    let listeners = Listeners::bind(&settings)?;
    let metrics = Metrics::default();
    let servers = settings.registry.shared()?.map(Servers::new);
    let has_others = servers.is_some() || settings.registry.is_ledgers();
    let engine_settings = engine_settings(&settings, &location, servers.clone(), listeners.addr);
    let ended = has_others.then(|| Arc::new(EndedAbroad::new(servers.is_some())));
    let inputs = engine_inputs(&settings, &ledger, &metrics, ended.as_ref(), shutdown.clone());
    let running = RunningEngine::start_with_clock(ledger.clone(), &engine_settings, inputs, clock).await?;
    let base = Base { settings, ledger, own_region, verifier, metrics, servers, ended };
    match base.app(&running, shutdown).await {
        Ok((app, edges)) => Ok(serve(app, running, listeners, edges)),
        Err(error) => {
            // A node that ends without a farewell counts as live for the other nodes.
            running.stop().await;
            Err(error)
        }
    }
}

/// The parts of a server that its engine does not need.
struct Base {
    settings: Settings,
    ledger: Ledger,
    /// `None` without regions.
    own_region: Option<OwnRegion>,
    verifier: Verifier,
    metrics: Metrics,
    servers: Option<Servers>,
    /// The ends to tell other nodes; `None` for a server without other nodes.
    ended: Option<Arc<EndedAbroad>>,
}

impl Base {
    /// Builds the app on a running engine, and starts the workers.
    async fn app(
        self,
        running: &RunningEngine,
        shutdown: CancellationToken,
    ) -> Result<(App, Edges), StartError> {
        let Self { settings, ledger, own_region, verifier, metrics, servers, ended } = self;
        let workers = running.workers();
        let others = ended.is_some().then(|| others(servers.clone(), &ledger, running.engine()));
        if let (Some(others), Some(ended)) = (others.clone(), ended) {
            workers.start(EndTeller::new(others, ended));
        }
        // A silent issuer must not keep a stopped start from its farewell.
        shutdown.run_until_cancelled(verifier.keep_up(workers)).await;
        let mut jobs = all_jobs(&settings, running, &ledger, &metrics).await?;
        let entitlements = entitlements(&settings, others, &ledger, running.engine().endings(), workers);
        let release_codes = Arc::new(ReleaseCodes::new(ledger.clone()).await?);
        workers.start(ReleaseKeyReader(Arc::clone(&release_codes)));
        let leeway = Duration::from_secs(settings.auth.leeway_seconds);
        let requests_max = settings.server.requests_max;
        let regions = Regions::from_settings(
            &settings.region,
            requests_max,
            leeway,
            (&ledger, own_region.as_ref()),
            workers,
        );
        let regions = regions.map_err(StartError::Region)?;
        let regions = regions.map(Arc::new);
        if let Some(regions) = &regions {
            // The first requests need the records, and the workers come later.
            regions.refresh_adoptions().await?;
            regions.refresh_moved_homes().await?;
            regions.refresh_deployments().await?;
            workers.start(RecordReader(Arc::clone(regions)));
            workers.start(MovedHomesReader(Arc::clone(regions)));
        }
        let mover = mover(&settings, regions.as_ref(), running, &ledger, &entitlements);
        if let Some(mover) = &mover {
            shutdown.run_until_cancelled(learn_at_start(mover)).await.transpose()?;
            workers.start(NumberChecker(Arc::clone(&mover.regions)));
            jobs.start(MoveJob(Arc::clone(mover)), workers, running.started_at()).await?;
        }
        let looks = Arc::new(looks(&settings, running, &ledger, servers.clone()));
        let app = App::new(Parts {
            verifier,
            engine: Arc::clone(running.engine()),
            entitlements,
            jobs,
            limits: Limits::new(&settings.limits, servers),
            holders: Holders::default(),
            release_codes,
            regions,
            mover,
            metrics_page: MetricsPage::new(&metrics, Arc::clone(&looks)),
            metrics_access: metrics_access(&settings.metrics, workers)?,
            looks,
            failed_reads: Flood::default(),
            metrics,
            reconciliation: Semaphore::new(1),
            ledger,
            stopping: shutdown.clone(),
            writes: TaskTracker::new(),
            settings,
        });
        stop_once_taken_over(running, shutdown.clone());
        let edges = edges(&app, shutdown, workers)?;
        Ok((app, edges))
    }
}

/// Checks that no peer knows a rival of the deployment, and learns forgotten homes from the peers.
async fn learn_at_start(mover: &Mover) -> Result<(), StartError> {
    let (checked, ()) = tokio::join!(mover.regions.check_number_at_start(), mover.learn_at_start());
    match checked {
        Err(RequestError::RegionNumberRefused { peer }) => {
            Err(StartError::NumberTaken { own: mover.regions.own(), peer })
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Returns the region of the ledger. Checks that the ledger belongs to the region of the settings, and that the region has no
/// successor.
async fn check_region(settings: &Settings, ledger: &Ledger) -> Result<Option<OwnRegion>, StartError> {
    let named = Region::new(settings.region.number);
    if named == Region::default() {
        let recorded = ledger.own_region().await?;
        return recorded.map_or(Ok(None), |own| Err(StartError::Unnumbered { recorded: own.region }));
    }
    let own = ledger.fix_own_region(named, !settings.region.peers.is_empty()).await?;
    if own.region != named {
        return Err(StartError::OtherRegion { recorded: own.region, named });
    }
    let adoption = ledger.adoptions().await?.into_iter().find(|adoption| adoption.lost == named);
    adoption.map_or(Ok(Some(own)), |adoption| Err(StartError::Adopted { successor: adoption.successor }))
}

/// Returns the mover of homes, for a server with regions.
fn mover(
    settings: &Settings,
    regions: Option<&Arc<Regions>>,
    running: &RunningEngine,
    ledger: &Ledger,
    entitlements: &Arc<Entitlements>,
) -> Option<Arc<Mover>> {
    Some(Arc::new(Mover {
        regions: Arc::clone(regions?),
        engine: Arc::clone(running.engine()),
        ledger: ledger.clone(),
        entitlements: Arc::clone(entitlements),
        ttl_default: Span::from_secs(settings.devices.ttl_seconds),
        license_ttl_default: Span::from_secs(settings.licenses.ttl_seconds),
        openings: Openings::default(),
        silent_peers: Mutex::default(),
    }))
}

/// Returns the inputs of the engine. `ended` collects the ends for the [`EndTeller`].
fn engine_inputs(
    settings: &Settings,
    ledger: &Ledger,
    metrics: &Metrics,
    ended: Option<&Arc<EndedAbroad>>,
    stopping: CancellationToken,
) -> Inputs {
    Inputs {
        terms: Arc::new(PoolTerms { ledger: ledger.clone(), settings: settings.clone() }),
        metrics: metrics.engine.clone(),
        on_recorded: ended.map(|ended| {
            let ended = Arc::clone(ended);
            Arc::new(move |events: &[_]| ended.note(events)) as _
        }),
        on_left: ended.map(|ended| {
            let ended = Arc::clone(ended);
            Arc::new(move |bucket| ended.note_bucket(bucket)) as _
        }),
        stopping,
    }
}

/// Starts all jobs, with the jobs of usage if a sink is configured.
async fn all_jobs(
    settings: &Settings,
    running: &RunningEngine,
    ledger: &Ledger,
    metrics: &Metrics,
) -> Result<Roster, StartError> {
    let (workers, now, registries) = (running.workers(), running.started_at(), running.engine().registries());
    let mut jobs = jobs::start(settings, registries, ledger, workers, &metrics.jobs, now).await?;
    if let Some(sink) = HttpSink::from_settings(&settings.usage, workers)? {
        let metering = Metering {
            sink,
            settings: settings.usage.clone(),
            backend: registries.for_capacities().clone(),
            ledger: ledger.clone(),
            metrics: metrics.usage.clone(),
        };
        metering.start(workers, &mut jobs, now).await?;
    }
    Ok(jobs)
}

/// The edges of a server: for clients, and for metrics if metrics have a listener of their own.
struct Edges {
    clients: Edge,
    metrics: Edge,
}

/// Builds the edges, with TLS if a certificate is configured.
fn edges(app: &App, shutdown: CancellationToken, workers: &WorkerSet) -> Result<Edges, StartError> {
    let server = &app.settings.server;
    let mut clients = Edge::new(router(app.clone()), server, shutdown);
    if let Some(files) = server.tls_files() {
        let (secured, reload) = clients.secured(Files::new(files))?;
        clients = secured;
        workers.start(reload);
    }
    let metrics = clients.with_router(metrics_router(app.clone()));
    Ok(Edges { clients, metrics })
}

/// Cancels `shutdown` once another process has taken the ledger, or a copy has taken its place.
fn stop_once_taken_over(running: &RunningEngine, shutdown: CancellationToken) {
    let taken_over = running.taken_over().clone();
    tokio::spawn(async move {
        tokio::select! {
            () = taken_over.cancelled() => shutdown.cancel(),
            () = shutdown.cancelled() => {}
        }
    });
}

/// Serves requests until the shutdown, and then stops the engine.
fn serve(app: App, running: RunningEngine, listeners: Listeners, edges: Edges) -> Running {
    let (addr, metrics_addr) = (listeners.addr, listeners.metrics_addr);
    let drain_timeout = Duration::from_secs(app.settings.server.shutdown_timeout_seconds);
    let writes = app.writes.clone();
    drop(app);
    let served = tokio::spawn(async move {
        let metrics_served = async {
            if let Some(listener) = listeners.metrics {
                edges.metrics.serve(listener, drain_timeout).await;
            }
        };
        tokio::join!(edges.clients.serve(listeners.clients, drain_timeout), metrics_served);
        // Pending writes and workers must reach the ledger before the engine stops.
        writes.close();
        if tokio::time::timeout(drain_timeout, writes.wait()).await.is_err() {
            tracing::error!(
                writes = writes.len(),
                "writes of administrators did not end before the stop: look whether each is on record"
            );
        }
        running.stop().await;
    });
    Running { addr, metrics_addr, served }
}

/// Builds the access rule for scrapes of metrics.
fn metrics_access(settings: &MetricsSettings, upkeep: &WorkerSet) -> Result<MetricsAccess, TokenFileError> {
    let MetricsSettings { token, token_file, .. } = settings;
    let name = "token of metrics";
    let token = BearerToken::from_settings(name, token.as_ref(), token_file.as_ref(), upkeep)?;
    Ok(MetricsAccess { token, is_apart: settings.listen.is_some() })
}

/// Builds the cached probes for metrics and health.
fn looks(settings: &Settings, running: &RunningEngine, ledger: &Ledger, servers: Option<Servers>) -> Looks {
    let node = Node { engine: Arc::clone(running.engine()), clocks: running.clock_steps().to_vec() };
    let license_series_max = u32::try_from(settings.metrics.license_series_max).unwrap_or(u32::MAX);
    let emission_clock = settings.usage.sink_url.as_ref().map(|_| Arc::clone(running.engine()));
    let books = Books { ledger: ledger.clone(), license_series_max, emission_clock };
    let refresh = Duration::from_secs(settings.metrics.refresh_seconds);
    Looks::new(node, books, servers.map(Redis::new), refresh)
}

/// Returns the transports to the other nodes: Redis if it is configured, and the shared PostgreSQL ledger.
fn others(redis: Option<Servers>, ledger: &Ledger, engine: &Arc<Engine>) -> Others {
    let engine = Arc::clone(engine);
    let is_redis_well = Arc::new(move || engine.is_registry_reached_by_all());
    Others { redis, notices: ledger.notices(), is_redis_well }
}

/// Builds the caches of entitlements, and starts their workers: the reader of policies, and, if nodes share a store, the
/// listeners for invalidations by other nodes.
fn entitlements(
    settings: &Settings,
    others: Option<Others>,
    ledger: &Ledger,
    endings: &Arc<Endings>,
    upkeep: &WorkerSet,
) -> Arc<Entitlements> {
    let licenses = Licenses::new(ledger.clone(), Duration::from_secs(settings.licenses.cache_seconds));
    let remember_for = Duration::from_secs(settings.devices.plan_cache_seconds);
    let shared = others.as_ref().and_then(|others| others.redis.clone());
    let subscribers = Subscribers::new(ledger.clone(), remember_for, shared);
    let entitlements = Arc::new(Entitlements { licenses, subscribers, others: others.clone() });
    upkeep.start(PolicyReader(Arc::clone(&entitlements)));
    let Some(Others { redis, notices, .. }) = others else { return entitlements };
    if let Some(servers) = redis {
        let (entitlements, endings) = (Arc::clone(&entitlements), Arc::clone(endings));
        upkeep.start(Listener::new(servers, entitlements, endings, upkeep.stopping()));
    }
    if let Some(notices) = notices {
        upkeep.start(NoticeReader {
            notices,
            entitlements: Arc::clone(&entitlements),
            endings: Arc::clone(endings),
            stopping: upkeep.stopping(),
        });
    }
    entitlements
}
