//! `seatkeeper repair`: repairs states that servers cannot repair by themselves. A new repair is a file here.

mod clock;
mod nodes;
mod region;
mod usage;

use std::process::ExitCode;

use clap::Subcommand;
use seatkeeper_ledger::{Ledger, Location, Settings};

use super::Error;
use crate::args::LedgerArgs;
use crate::{output, settings};

#[derive(Debug, Subcommand)]
pub(crate) enum RepairCommand {
    /// Set registry time back to the true time, after a wrong time got on record
    Clock(clock::ClockArgs),
    /// Forget nodes that died without a farewell, and let the live nodes take over
    Nodes(nodes::NodesArgs),
    /// Forget the deployment of a peer region that is wrong on record or gone for good
    Region(region::RegionArgs),
    /// Let usage be recorded in a promoted standby or a restored backup, once the sink agrees with it
    Usage(usage::UsageArgs),
}

pub(crate) async fn run(command: RepairCommand) -> Result<ExitCode, Error> {
    match command {
        RepairCommand::Clock(args) => clock::run(&args).await,
        RepairCommand::Nodes(args) => nodes::run(&args).await,
        RepairCommand::Region(args) => region::run(&args).await,
        RepairCommand::Usage(args) => usage::run(&args).await,
    }
}

/// Opens an existing ledger of this version, and prints the ledger's location, without a password.
async fn open(args: &LedgerArgs) -> Result<(Ledger, Location), Error> {
    let location = settings::ledger(&args.sources())?;
    let ledger = Ledger::open_existing(Settings::new(location.clone())).await?;
    output::line(format_args!("ledger {location}"))?;
    Ok((ledger, location))
}
