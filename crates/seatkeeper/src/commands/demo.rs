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
pub(crate) use error::DemoError;

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {}

pub(crate) async fn run(_: &DemoArgs) -> Result<ExitCode, Error> {
    Ok(story::tell().await?)
}
