//! Builds the server. Only here is a backend of the registry named.

mod embedded;
mod shared;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use seatkeeper_core::RegistryTime;
use seatkeeper_ledger::Ledger;
use seatkeeper_registry::redis::Servers;
use seatkeeper_registry::{MonotonicClock, Share, TimeSource};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::app::{App, Parts};
use crate::auth::{KeyError, Verifier};
use crate::edge::{self, CertificateError, Edge, Files};
use crate::engine::{Commits, Endings, Engine, Registries};
use crate::entitlements::{Entitlements, Licenses, Listener, Subscribers};
use crate::failover::Bearings;
use crate::http::router;
use crate::jobs;
use crate::limits::Limits;
use crate::metrics::{Books, Looks, Metrics, MetricsPage, Node, Redis};
use crate::settings::{MetricsSettings, Misfit, Settings};
use crate::usage::{HttpSink, Metering, SinkError};
use crate::workers::{Crew, Drain, DrainAlone, Flush, Recorder, Sweep};
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
    let address = settings.server.listen;
    let listener = edge::listen(address).map_err(|source| StartError::Listen { address, source })?;
    let addr = listener.local_addr().map_err(|source| StartError::Listen { address, source })?;

    let commits = Commits::new(settings.registry.journal_events_max);
    let upkeep = Crew::new();
    let metrics = Metrics::default();
    let servers = settings.registry.shared()?.map(Servers::new);
    let recorder = Recorder::start().map_err(StartError::Recorder)?;
    let shared = Shared::of(&settings, servers.clone(), &ledger, &recorder).await?;
    let (registries, bearings) = match &shared {
        Some(shared) => {
            shared.start(&settings, &ledger, &upkeep, &metrics).await;
            (shared.registries.clone(), Arc::clone(&shared.bearings))
        }
        None => {
            let recorded = ledger.last_time().await?.unwrap_or_default();
            let clock = clock(embedded::first_time(recorded));
            let registry = embedded::filled_registry(&settings, &ledger, clock).await?;
            (Registries::only(registry, commits), Arc::new(Bearings::alone()))
        }
    };
    let endings = Arc::new(Endings::default());
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
            bearings: Arc::clone(&bearings),
            metrics: metrics.changes.clone(),
            gives_way: Default::default(),
        };
        drainage.start_on(recorder.runtime(), drain);
    }
    if let Some((station, shared)) = registries.alone.as_ref().zip(shared.as_ref()) {
        let (station, ledger, node) = (station.clone(), ledger.clone(), shared.presence.id());
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
    let entitlements = entitlements(&settings, servers.clone(), &ledger, &upkeep);
    let claims = metrics.claims.clone();
    let engine = Engine::new(
        registries.clone(),
        ledger.clone(),
        endings,
        Arc::clone(&bearings),
        claims,
        commit_timeout,
    );
    let engine = Arc::new(engine);
    let node = Node { engine: Arc::clone(&engine), registries, bearings };
    let looks = Arc::new(looks(&settings.metrics, node, &ledger, servers));
    let app = App::new(Parts {
        verifier,
        engine,
        entitlements,
        jobs,
        limits,
        metrics_page: MetricsPage::new(&metrics, Arc::clone(&looks)),
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
    drop(app);
    let served = tokio::spawn(async move {
        edge.serve(listener, drain_timeout).await;
        // What writes and upkeep still do must reach the ledger as well.
        writes.close();
        writes.wait().await;
        upkeep.stop().await;
        drainage.stop().await;
        if let Some(shared) = shared {
            shared.presence.left().await;
        }
        written.close().await;
        ledger.close().await;
        drop(recorder);
    });
    Ok(Running { addr, served })
}

/// What is looked up for operators.
fn looks(settings: &MetricsSettings, node: Node, ledger: &Ledger, servers: Option<Servers>) -> Looks {
    let license_series_max = u32::try_from(settings.license_series_max).unwrap_or(u32::MAX);
    let books = Books { ledger: ledger.clone(), license_series_max };
    let refresh = Duration::from_secs(settings.refresh_seconds);
    Looks::new(node, books, servers.map(Redis::new), refresh)
}

/// What is remembered of entitlements, and what nodes tell one another of them if there are several.
fn entitlements(
    settings: &Settings,
    others: Option<Servers>,
    ledger: &Ledger,
    upkeep: &Crew,
) -> Arc<Entitlements> {
    let licenses = Licenses::new(ledger.clone(), Duration::from_secs(settings.licenses.cache_seconds));
    let remember_for = Duration::from_secs(settings.devices.plan_cache_seconds);
    let subscribers = Subscribers::new(ledger.clone(), remember_for, others.clone());
    let entitlements = Arc::new(Entitlements { licenses, subscribers, others: others.clone() });
    if let Some(others) = others {
        upkeep.start(Listener::new(others, Arc::clone(&entitlements), upkeep.stopping()));
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
