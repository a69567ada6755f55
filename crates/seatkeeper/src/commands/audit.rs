//! `seatkeeper audit …`: reads and proves the audit log.

mod list;
mod regions;
pub(crate) mod verify;

use std::process::ExitCode;

use clap::Subcommand;

use super::Error;

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Read the audit log of a server
    List(list::ListArgs),
    /// Prove from the audit log that no pool was ever above its limit, or name the first record that breaks
    /// it
    Verify(verify::VerifyArgs),
}

pub(crate) async fn run(command: AuditCommand) -> Result<ExitCode, Error> {
    match command {
        AuditCommand::List(args) => list::run(&args).await,
        AuditCommand::Verify(args) => verify::run(&args).await,
    }
}
