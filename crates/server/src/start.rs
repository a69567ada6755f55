//! Builds the server. Only here is a backend of the registry named.

mod embedded;
mod on_record;
mod shared;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use seatkeeper_core::RegistryTime;
use seatkeeper_ledger::{Ledger, Notices};
use seatkeeper_redis::Servers;
use seatkeeper_registry::{MonotonicClock, Share, TimeSource};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::{App, Parts};
use crate::auth::{KeyError, Verifier};
use crate::bearer::{BearerToken, TokenFileError};
use crate::edge::{self, CertificateError, Edge, Files};
use crate::engine::{Commits, Endings, Engine, Registries};
use crate::entitlements::{
    EndTeller, EndedAbroad, Entitlements, Licenses, Listener, NoticeReader, Others, Subscribers,
};
use crate::failover::EpochLease;
use crate::http::{metrics_router, router};
use crate::jobs;
use crate::limits::Limits;
use crate::metrics::{Books, Looks, Metrics, MetricsAccess, MetricsPage, Node, Redis};
use crate::settings::{MetricsSettings, Misfit, Settings};
use crate::usage::{HttpSink, Metering, SinkError};
use crate::workers::{Crew, Drain, DrainAlone, Flush, Reconcile, Recorder, Sweep};
use shared::Shared;

/// How often it is looked whose time is over of those whom this node admitted alone.
const ALONE_SWEEP_INTERVAL: Duration = Duration::from_secs(1);

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting cannot be.
    #[error("a setting does not fit")]
    Settings(#[from] Misfit),
    /// The ledger cannot be used.
    #[error("the ledger cannot be used")]
    Ledger(#[from] seatkeeper_ledger::Error),
    /// The registry cannot be filled.
    #[error("the live sessions could not be put back")]
    Registry(#[from] seatkeeper_registry::Error),
    /// What nodes share cannot be used.
    #[error("the Redis that nodes share cannot be used: {0}")]
    Unfit(String),
    /// There is no key to check tokens with.
    #[error("there is no key to check tokens with")]
    Key(#[from] KeyError),
    /// No client can be made that brings usage to the sink.
    #[error("usage cannot be brought to the sink")]
    Sink(#[from] SinkError),
    /// The thread that puts events on record cannot be started.
    #[error("there is no thread to put events on record with")]
    Recorder(#[source] std::io::Error),
    /// There is no token that scrapes of metrics must show.
    #[error("the token of metrics.token_file cannot be used")]
    MetricsToken(#[from] TokenFileError),
    /// The certificate that clients are to be shown cannot be.
    #[error("the certificate of server.tls_cert_file cannot be used")]
    Certificate(#[from] CertificateError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}

/// A server that takes requests.
pub struct Running {
    /// The address it listens on, with the port it got.
    pub addr: SocketAddr,
    /// The address that metrics have for themselves, with the port it got.
    pub metrics_addr: Option<SocketAddr>,
    served: JoinHandle<()>,
}

impl Running {
    /// Resolves when the server has stopped: requests answered, records written, ledger closed.
    pub async fn finished(self) {
        if let Err(error) = self.served.await {
            tracing::error!(error = &error as &dyn std::error::Error, "the server stopped short");
        }
    }
}

/// Starts a server: opens the ledger, puts back the sessions it knows as live, and listens. It stops
/// when `shutdown` is cancelled.
pub async fn start(settings: Settings, shutdown: CancellationToken) -> Result<Running, StartError> {
    start_by(settings, shutdown, MonotonicClock::starting_at).await
}

/// Starts a server whose registry's time comes from `clock`, for tests that simulate months. The clock must
/// not be behind what is on record.
pub async fn start_with_clock(
    settings: Settings,
    shutdown: CancellationToken,
    clock: impl TimeSource,
) -> Result<Running, StartError> {
    start_by(settings, shutdown, |_| clock).await
}

/// Starts a server; `clock` is told when its clock is to start.
async fn start_by<C: TimeSource>(
    settings: Settings,
    shutdown: CancellationToken,
    clock: impl FnOnce(RegistryTime) -> C,
) -> Result<Running, StartError> {
    settings.check()?;
    let ledger = Ledger::open(seatkeeper_ledger::Settings::new(settings.ledger.location()?)).await?;
    let verifier = Verifier::new(&settings)?;
    let (listener, addr) = listening(settings.server.listen)?;
    let (metrics_listener, metrics_addr) = settings.metrics.listen.map(listening).transpose()?.unzip();

    let commits = Commits::new(settings.registry.journal_events_max);
    let upkeep = Crew::new();
    let metrics = Metrics::default();
    let servers = settings.registry.shared()?.map(Servers::new);
    let recorder = Recorder::start().map_err(StartError::Recorder)?;
    let shared = Shared::of(&settings, servers.clone(), &ledger, &recorder).await?;
    let (registries, lease) = match &shared {
        Some(shared) => {
            shared.start(&settings, &ledger, &upkeep, &metrics).await;
            (shared.registries.clone(), Arc::clone(&shared.lease))
        }
        None => {
            let recorded = ledger.last_time().await?.unwrap_or_default();
            let clock = clock(embedded::first_time(recorded));
            let registry = embedded::filled_registry(&settings, &ledger, clock).await?;
            (Registries::only(registry, commits), Arc::new(EpochLease::unshared()))
        }
    };
    let endings = Arc::new(Endings::default());
    let others = others(&settings, servers.clone(), &ledger);
    let ended_abroad = match &others {
        Some(Others::ByPostgres(notices)) => Some(tell_of_ends(notices, &upkeep)),
        Some(Others::ByRedis(_)) | None => None,
    };
    let now = registries.for_capacities().registry.now().await?;
    let (drainage, written) = (Crew::new(), ledger.apart());
    let readers = registries.all().flat_map(|station| {
        // A reader waits for Redis and for PostgreSQL in turn; another one gets on meanwhile.
        let is_redis = servers.is_some() && registries.is_main(station);
        let are_two = is_redis && written.commits_at_once() > 1;
        let shares = if are_two { &Share::HALVES[..] } else { &[Share::All] };
        shares.iter().map(move |share| (station, *share))
    });
    for (station, share) in readers {
        let drain = Drain {
            station: station.clone(),
            share,
            ledger: written.clone(),
            endings: Arc::clone(&endings),
            ended_abroad: ended_abroad.clone(),
            lease: Arc::clone(&lease),
            metrics: metrics.changes.clone(),
            gives_way: Default::default(),
        };
        drainage.start_on(recorder.runtime(), drain);
    }
    if let Some((station, shared)) = registries.alone.as_ref().zip(shared.as_ref()) {
        let (station, ledger, node) = (station.clone(), ledger.clone(), shared.membership.id());
        upkeep.start(Sweep::new(station.clone(), ALONE_SWEEP_INTERVAL));
        drainage.start(DrainAlone { station, ledger, node });
    }
    workers(&settings, &registries, &ledger, &upkeep, now);
    verifier.keep_up(&upkeep).await;
    let mut jobs = jobs::start(&settings, &registries, &ledger, &upkeep, &metrics.jobs, now).await?;
    if let Some(sink) = HttpSink::of(&settings.usage, &upkeep)? {
        let metering = Metering {
            sink,
            settings: settings.usage.clone(),
            station: registries.for_capacities().clone(),
            ledger: ledger.clone(),
            metrics: metrics.usage.clone(),
        };
        metering.start(&upkeep, &mut jobs, now).await?;
    }
    let commit_timeout = Duration::from_millis(settings.ledger.commit_timeout_milliseconds);
    let drain_timeout = Duration::from_secs(settings.server.shutdown_timeout_seconds);
    let writes = TaskTracker::new();
    let limits = Limits::new(&settings.limits, servers.clone());
    let entitlements = entitlements(&settings, others, &ledger, &endings, &upkeep);
    let claims = metrics.claims.clone();
    let engine =
        Engine::new(registries.clone(), ledger.clone(), endings, Arc::clone(&lease), claims, commit_timeout);
    let engine = Arc::new(engine);
    upkeep.start(Reconcile {
        engine: Arc::clone(&engine),
        ledger: ledger.clone(),
        settings: settings.clone(),
        looked: Default::default(),
    });
    let clocks = shared.as_ref().map(|shared| shared.clocks.clone()).unwrap_or_default();
    let node = Node { engine: Arc::clone(&engine), registries, lease, clocks };
    let looks = Arc::new(looks(&settings.metrics, node, &ledger, servers));
    let app = App::new(Parts {
        verifier,
        engine,
        entitlements,
        jobs,
        limits,
        metrics_page: MetricsPage::new(&metrics, Arc::clone(&looks)),
        metrics_access: metrics_access(&settings.metrics, &upkeep)?,
        looks,
        metrics,
        reconciliation: Semaphore::new(1),
        ledger: ledger.clone(),
        stopping: shutdown.clone(),
        writes: writes.clone(),
        settings,
    });
    let mut edge = Edge::new(router(app.clone()), &app.settings.server, shutdown);
    if let Some(files) = app.settings.server.tls_files() {
        let (secured, reload) = edge.secured(Files::of(files))?;
        edge = secured;
        upkeep.start(reload);
    }
    let metrics_edge = edge.with_router(metrics_router(app.clone()));
    drop(app);
    let served = tokio::spawn(async move {
        let metrics_served = async {
            if let Some(listener) = metrics_listener {
                metrics_edge.serve(listener, drain_timeout).await;
            }
        };
        tokio::join!(edge.serve(listener, drain_timeout), metrics_served);
        // What writes and upkeep still do must reach the ledger as well.
        writes.close();
        writes.wait().await;
        upkeep.stop().await;
        drainage.stop().await;
        if let Some(shared) = shared {
            shared.membership.left().await;
        }
        written.close().await;
        ledger.close().await;
        drop(recorder);
    });
    Ok(Running { addr, metrics_addr, served })
}

/// Listens at an address. Returns the listener, and the address with the port that the system chose.
fn listening(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let failed = |source| StartError::Listen { address, source };
    let listener = edge::listen(address).map_err(failed)?;
    let addr = listener.local_addr().map_err(failed)?;
    Ok((listener, addr))
}

/// The rule for scrapes of metrics.
fn metrics_access(settings: &MetricsSettings, upkeep: &Crew) -> Result<MetricsAccess, TokenFileError> {
    let MetricsSettings { token, token_file, .. } = settings;
    let name = "token of metrics";
    let token = BearerToken::from_settings(name, token.as_ref(), token_file.as_ref(), upkeep)?;
    Ok(MetricsAccess { token, is_apart: settings.listen.is_some() })
}

/// What is looked up for operators.
fn looks(settings: &MetricsSettings, node: Node, ledger: &Ledger, servers: Option<Servers>) -> Looks {
    let license_series_max = u32::try_from(settings.license_series_max).unwrap_or(u32::MAX);
    let books = Books { ledger: ledger.clone(), license_series_max };
    let refresh = Duration::from_secs(settings.refresh_seconds);
    Looks::new(node, books, servers.map(Redis::new), refresh)
}

/// Returns the channel to the other nodes: Redis if it is configured, else the shared PostgreSQL ledger.
fn others(settings: &Settings, servers: Option<Servers>, ledger: &Ledger) -> Option<Others> {
    match servers {
        Some(servers) => Some(Others::ByRedis(servers)),
        None if settings.registry.is_ledgers() => ledger.notices().map(Others::ByPostgres),
        None => None,
    }
}

/// Starts to tell other nodes of ends by PostgreSQL's notices.
fn tell_of_ends(notices: &Notices, upkeep: &Crew) -> Arc<EndedAbroad> {
    let ended = Arc::new(EndedAbroad::default());
    upkeep.start(EndTeller { notices: notices.clone(), ended: Arc::clone(&ended) });
    ended
}

/// What is remembered of entitlements, and what nodes tell one another of them if there are several.
fn entitlements(
    settings: &Settings,
    others: Option<Others>,
    ledger: &Ledger,
    endings: &Arc<Endings>,
    upkeep: &Crew,
) -> Arc<Entitlements> {
    let licenses = Licenses::new(ledger.clone(), Duration::from_secs(settings.licenses.cache_seconds));
    let remember_for = Duration::from_secs(settings.devices.plan_cache_seconds);
    let shared = match &others {
        Some(Others::ByRedis(servers)) => Some(servers.clone()),
        Some(Others::ByPostgres(_)) | None => None,
    };
    let subscribers = Subscribers::new(ledger.clone(), remember_for, shared);
    let entitlements = Arc::new(Entitlements { licenses, subscribers, others: others.clone() });
    match others {
        Some(Others::ByRedis(servers)) => {
            upkeep.start(Listener::new(servers, Arc::clone(&entitlements), upkeep.stopping()));
        }
        Some(Others::ByPostgres(notices)) => upkeep.start(NoticeReader {
            notices,
            entitlements: Arc::clone(&entitlements),
            endings: Arc::clone(endings),
            stopping: upkeep.stopping(),
        }),
        None => {}
    }
    entitlements
}

/// The workers that look after sessions and history from `now` on.
fn workers(settings: &Settings, registries: &Registries, ledger: &Ledger, upkeep: &Crew, now: RegistryTime) {
    let flush_interval = Duration::from_secs(settings.ledger.heartbeat_flush_seconds);
    for station in registries.with_heartbeats() {
        // Where nodes share the sessions, each knows only of its own heartbeats, and begins with none.
        let since = if station.is_rebuilt() { RegistryTime::default() } else { now };
        upkeep.start(Flush::new(station.clone(), ledger.clone(), flush_interval, since));
    }
    if settings.registry.sweep_interval_milliseconds > 0 {
        let interval = Duration::from_millis(settings.registry.sweep_interval_milliseconds);
        for station in registries.all() {
            upkeep.start(Sweep::new(station.clone(), interval));
        }
    }
}
