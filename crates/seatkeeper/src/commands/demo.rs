//! `seatkeeper demo`: tells the whole story in a terminal, on a private server.

mod capacity;
mod child;
mod error;
mod license_api;
mod screens;
mod story;

use std::process::ExitCode;

use clap::Args;

use super::Error;
use crate::signals::EndSignals;
pub(crate) use error::DemoError;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {}

/// Tells the story. After a signal, the drop of the story ends the server and removes the directory with the server's key.
pub(crate) async fn run(_: &DemoArgs) -> Result<ExitCode, Error> {
    let mut signals = EndSignals::listen().map_err(Error::Signals)?;
    tokio::select! {
        told = story::tell() => Ok(told?),
        signal = signals.next() => Err(Error::Interrupted { signal }),
    }
}
