//! `seatkeeper usage …`: the metered use of capacities, and its delivery to the sink.

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
    /// List the windows of metering, the newest first
    List(list::ListArgs),
    /// List the batches of records: delivered, pending, or refused by the sink
    Batches(batches::BatchesArgs),
    /// Send batches again that the sink refused: one, or all
    Send(send::SendArgs),
    /// Compare held with recorded and delivered usage; exit with 1 if they differ
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
