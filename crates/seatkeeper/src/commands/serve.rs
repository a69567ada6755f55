//! `seatkeeper serve`: runs the server until it is told to stop.

mod hints;

use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;

use clap::Args;
use seatkeeper_server::Settings;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::Error;
use crate::cli::SettingsArgs;
use crate::{logging, output, settings};

#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    settings: SettingsArgs,
}

pub(crate) async fn run(args: &ServeArgs) -> Result<ExitCode, Error> {
    let settings = settings::load(&args.settings.sources())?;
    logging::start(&settings.log)?;
    let stop_asked = stop_asked().map_err(Error::Signals)?;
    let stop = CancellationToken::new();
    let running = seatkeeper_server::start(settings.clone(), stop.clone()).await?;
    warn_if_exposed(running.addr);
    if let Err(error) = welcome(running.addr, &settings) {
        tracing::warn!(%error, "the standard output is closed; the server runs all the same");
    }

    let finished = running.finished();
    tokio::pin!(finished);
    tokio::select! {
        () = &mut finished => return Err(Error::Stopped),
        () = stop_asked => {
            tracing::info!("stopping: requests under way are answered first");
            stop.cancel();
            finished.await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Resolves when the process is asked to stop. It is listened for from this call on.
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

fn warn_if_exposed(addr: SocketAddr) {
    if !addr.ip().is_loopback() {
        tracing::warn!(
            %addr,
            "tokens travel unencrypted: put a TLS proxy in front, or listen on a loopback address"
        );
    }
}

fn welcome(addr: SocketAddr, settings: &Settings) -> io::Result<()> {
    output::line(format_args!("listening on http://{addr}"))?;
    output::line(hints::text(addr, settings))
}
