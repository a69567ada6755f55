//! `seatkeeper serve`: runs the server until the process is asked to stop.

mod hints;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use seatkeeper_server::{MetricsSettings, Running, ServerSettings, Settings};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Error;
use crate::args::SettingsArgs;
use crate::settings::Sources;
use crate::{logging, output, settings};

/// The number of open files besides connections: the ledger, Redis, the log.
const FILES_BESIDE: u64 = 256;

/// The longest wait for a start to end after the process was asked to stop. A start may wait for tables in use, or for the
/// predecessor of an embedded server, for longer.
const START_END_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(crate) async fn run(args: &ServeArgs) -> Result<ExitCode, Error> {
    let sources = args.settings.sources();
    let settings = settings::load(&sources)?;
    let traces = logging::start(&settings)?;
    warn_of_service_variables(&sources);
    raise_file_limit(&settings);
    ignore_hangups().map_err(Error::Signals)?;
    let mut stop_asked = pin!(stop_asked().map_err(Error::Signals)?);
    let stop = CancellationToken::new();
    let mut starting = pin!(seatkeeper_server::start(settings.clone(), stop.clone()));
    let running = tokio::select! {
        running = &mut starting => running?,
        () = &mut stop_asked => {
            tracing::info!("stopping: the server has not started yet");
            stop.cancel();
            // A node that is on record among the nodes already has to say farewell.
            match tokio::time::timeout(START_END_MAX, starting).await {
                Ok(Ok(running)) => running.finished().await,
                Ok(Err(error)) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::warn!(error, "the server would not have started");
                }
                Err(_still_waiting) => tracing::warn!(
                    "the start did not end in time: other nodes may count this node as live; if seats of its buckets stay \
                     503, run `seatkeeper repair nodes`"
                ),
            }
            return Ok(ExitCode::SUCCESS);
        }
    };
    warn_if_exposed(running.addr, &settings);
    warn_if_metrics_are_open(&running, &settings);
    warn_if_audience_is_open(&settings);
    warn_if_token_key_is_unshared(&settings);
    if let Err(error) = welcome(&running, &settings, sources.file.as_deref()) {
        tracing::warn!(%error, "the standard output cannot be written: the hints are not printed, and the server runs on");
    }

    let mut finished = pin!(running.finished());
    tokio::select! {
        () = &mut finished => return Err(Error::Stopped),
        () = &mut stop_asked => {
            tracing::info!("stopping: requests under way are answered first");
            stop.cancel();
            finished.await;
        }
    }
    if let Some(traces) = traces {
        traces.finish().await;
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns a future that resolves when the process is asked to stop. Signals count from this call on.
fn stop_asked() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// Logs every SIGHUP and goes on. A closed terminal sends the signal, and so do many scripts that rotate logs.
fn ignore_hangups() -> io::Result<()> {
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            tracing::info!(
                "SIGHUP is ignored: certificates, keys and secrets are read again by themselves, and settings at the start"
            );
        }
    });
    Ok(())
}

/// Raises the process's limit of open files to the configured number of connections, as far as permitted.
fn raise_file_limit(settings: &Settings) {
    let wanted = settings.server.connections_max as u64 + FILES_BESIDE;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= wanted) {
        return;
    }
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let done = setrlimit(Resource::Nofile, Rlimit { current: Some(raised), maximum });
    if done.is_err() || raised < wanted {
        tracing::warn!(
            wanted,
            may = raised,
            "the limit of open files is below server.connections_max: connections may be refused; raise the limit (ulimit -n) or lower the setting"
        );
    }
}

fn warn_of_service_variables(sources: &Sources) {
    let names: Vec<_> = sources.service_variables().collect();
    if !names.is_empty() {
        tracing::warn!(
            variables = names.join(", "),
            "variables that Kubernetes sets for a Service are ignored, for they are no settings: to be rid of them, set enableServiceLinks: false in the pod's spec"
        );
    }
}

fn warn_if_exposed(addr: SocketAddr, settings: &Settings) {
    let ServerSettings { tls_cert_file, trusted_proxies, .. } = &settings.server;
    if !addr.ip().is_loopback() && tls_cert_file.is_none() && trusted_proxies.is_empty() {
        tracing::warn!(
            %addr,
            "tokens travel unencrypted: set server.tls_cert_file, put a TLS proxy in front and name it in server.trusted_proxies, or listen on a loopback address"
        );
    }
}

fn warn_if_metrics_are_open(running: &Running, settings: &Settings) {
    let MetricsSettings { token, token_file, .. } = &settings.metrics;
    if let Some(addr) = running.metrics_addr.filter(|addr| !addr.ip().is_loopback())
        && token.is_none()
        && token_file.is_none()
    {
        tracing::warn!(
            %addr,
            "metrics show the license ids of all tenants to whoever reaches their address: set metrics.token_file, or let metrics.listen be an address that only Prometheus reaches"
        );
    }
}

/// Warns of an issuer whose tokens for other applications are accepted (RFC 8725, section 3.9).
fn warn_if_audience_is_open(settings: &Settings) {
    if settings.auth.jwks_url.is_some() && settings.auth.audience.is_none() {
        tracing::warn!(
            "tokens that the issuer at auth.jwks_url makes for other applications are accepted: set auth.audience to the aud of the tokens for this server"
        );
    }
}

/// Warns of a node among others whose key of tokens was made by the node itself.
fn warn_if_token_key_is_unshared(settings: &Settings) {
    if settings.is_token_key_unshared() {
        tracing::warn!(
            "this node checks tokens by a key of its own data directory: it refuses the tokens of other nodes, and they refuse its tokens; on every node set auth.key_file to the same key, or auth.jwks_url"
        );
    }
}

fn welcome(running: &Running, settings: &Settings, config: Option<&Path>) -> io::Result<()> {
    let scheme = hints::scheme(settings);
    let addr = running.addr;
    if let Some(addr) = running.metrics_addr {
        output::line(format_args!("metrics at {scheme}://{addr}/metrics"))?;
    }
    output::line(format_args!("listening on {scheme}://{addr}"))?;
    output::line(hints::text(addr, settings, config))
}
