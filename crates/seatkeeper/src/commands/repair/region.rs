//! `seatkeeper repair region`: makes a region forget the deployment of a peer, which is wrong on record or gone for good.
//! Without `--apply` nothing changes.

use std::process::ExitCode;

use clap::Args;
use seatkeeper_core::Region;
use seatkeeper_ledger::Ledger;

use crate::args::LedgerArgs;
use crate::commands::{EXIT_FAILED, Error};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct RegionArgs {
    /// The number of the peer region
    #[arg(value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(1..))]
    number: u8,
    #[command(flatten)]
    ledger: LedgerArgs,
    /// Forget the deployment; without it, only print the deployment on record
    #[arg(long)]
    apply: bool,
}

pub(super) async fn run(args: &RegionArgs) -> Result<ExitCode, Error> {
    let (ledger, _) = super::open(&args.ledger).await?;
    let repaired = repair(&ledger, Region::new(args.number), args.apply).await;
    ledger.close().await;
    repaired
}

async fn repair(ledger: &Ledger, peer: Region, apply: bool) -> Result<ExitCode, Error> {
    let known = ledger.peer_deployments().await?;
    let Some((_, deployment)) = known.into_iter().find(|(region, _)| *region == peer) else {
        output::line(format_args!("This ledger knows no deployment as region {peer}."))?;
        return Ok(ExitCode::from(EXIT_FAILED));
    };
    output::line(format_args!("This ledger knows deployment {deployment} as region {peer}."))?;
    if !apply {
        output::line(
            "Nothing was changed. Ask again with --apply if the record is wrong, or if the deployment is stopped for good: the \
             next deployment with the number and key of the region takes the place. No empty ledger may take the place of an \
             anchor: every home would be assigned anew.",
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    ledger.forget_peer_deployment(peer).await?;
    output::line("The deployment is forgotten. Every node knows so within a second.")?;
    Ok(ExitCode::SUCCESS)
}
