//! `seatkeeper repair`: repairs states that servers cannot repair by themselves. A new repair is a file here.

mod clock;
mod nodes;

use std::process::ExitCode;

use clap::Subcommand;

use super::Error;

#[derive(Debug, Subcommand)]
pub(crate) enum RepairCommand {
    /// Set registry time back to the true time, after a wrong time got on record
    Clock(clock::ClockArgs),
    /// Forget nodes that died without a farewell, and let the live nodes take over
    Nodes(nodes::NodesArgs),
}

pub(crate) async fn run(command: RepairCommand) -> Result<ExitCode, Error> {
    match command {
        RepairCommand::Clock(args) => clock::run(&args).await,
        RepairCommand::Nodes(args) => nodes::run(&args).await,
    }
}
