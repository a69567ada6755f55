//! `seatkeeper usage …`: what capacities were used, and what became of it at the sink.

mod amount;
mod batches;
mod list;
mod reconcile;
mod send;

use std::process::ExitCode;

use clap::Subcommand;

use super::Error;
use amount::Amount;

#[derive(Debug, Subcommand)]
pub(crate) enum UsageCommand {
    /// The windows in which sessions were metered, the newest first
    List(list::ListArgs),
    /// Batches of records: what the sink has, what is on its way, what it refused
    Batches(batches::BatchesArgs),
    /// Send a batch again that the sink refused
    Send(send::SendArgs),
    /// Compare what was held with what was recorded and delivered; exit 1 if they do not agree
    Reconcile(reconcile::ReconcileArgs),
}

pub(crate) async fn run(command: UsageCommand) -> Result<ExitCode, Error> {
    match command {
        UsageCommand::List(args) => list::run(&args).await,
        UsageCommand::Batches(args) => batches::run(&args).await,
        UsageCommand::Send(args) => send::run(&args).await,
        UsageCommand::Reconcile(args) => reconcile::run(&args).await,
    }
}
