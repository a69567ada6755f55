//! `seatkeeper region …`: shows regions and moves homes through the admin API, and adopts lost regions.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use seatkeeper_server::{Adopted, AdoptedCounts};
use serde::Deserialize;
use serde_json::json;

use super::Error;
use crate::admin::{self, HOME_MOVES, REGIONS};
use crate::args::{LedgerArgs, ServerArgs};
use crate::{output, settings};

#[derive(Debug, Subcommand)]
pub(crate) enum RegionCommand {
    /// List the regions as one region sees them: reachability, homes, homes moving
    List(ListArgs),
    /// Move the home of a subscriber, with its live sessions, to another region
    Move(MoveArgs),
    /// Adopt a region that is lost for good: bring the pools of the restored ledger to a successor
    Adopt(AdoptArgs),
}

#[derive(Debug, Args)]
pub(crate) struct AdoptArgs {
    /// The lost region: its name or number
    #[arg(value_name = "NAME")]
    lost: String,
    /// The region that takes over: the name or the number of a peer
    #[arg(long, value_name = "NAME")]
    into: String,
    /// The settings file of the lost region, and its restored ledger
    #[command(flatten)]
    ledger: LedgerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MoveArgs {
    /// The subscriber, as named by tokens
    #[arg(long)]
    user: String,
    /// The target: the name or the number of a region
    #[arg(long, value_name = "NAME")]
    to: String,
    #[command(flatten)]
    server: ServerArgs,
}

/// A region, with the fields for tables.
#[derive(Debug, Deserialize)]
struct Region {
    region: u8,
    name: String,
    own: bool,
    reachable: bool,
    adopted_by: Option<u8>,
    homes: u64,
    homes_moving: u64,
}

/// The answer with all regions.
#[derive(Debug, Deserialize)]
struct Regions {
    items: Vec<Region>,
}

/// The answer to a move.
#[derive(Debug, Deserialize)]
struct Home {
    user: String,
    region: u8,
    version: u64,
    moving: bool,
}

pub(crate) async fn run(command: RegionCommand) -> Result<ExitCode, Error> {
    match command {
        RegionCommand::List(args) => list(&args).await?,
        RegionCommand::Move(args) => relocate(&args).await?,
        RegionCommand::Adopt(args) => adopt(&args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(args: &ListArgs) -> Result<(), Error> {
    let api = admin::connect(&args.server)?;
    let answer = api.get(REGIONS).await?;
    if args.server.json {
        return Ok(output::json(&answer)?);
    }
    let Regions { items } = api.read(REGIONS, answer)?;
    let row = |region: Region| {
        let state = match (region.own, region.adopted_by) {
            (true, _) => "this region".to_owned(),
            (false, Some(successor)) => format!("lost, adopted by {successor}"),
            (false, None) if region.reachable => "reachable".to_owned(),
            (false, None) => "unreachable".to_owned(),
        };
        let Region { region: number, name, homes, homes_moving, .. } = region;
        [number.to_string(), name, state, homes.to_string(), homes_moving.to_string()]
    };
    let header = ["REGION", "NAME", "STATE", "HOMES", "MOVING THERE"];
    Ok(output::table(header, items.into_iter().map(row))?)
}

async fn relocate(args: &MoveArgs) -> Result<(), Error> {
    let api = admin::connect(&args.server)?;
    let answer = api.post(HOME_MOVES, json!({ "user": args.user, "to": args.to })).await?;
    if args.server.json {
        return Ok(output::json(&answer)?);
    }
    let Home { user, region, version, moving } = api.read(HOME_MOVES, answer)?;
    let state = if moving { "is on its way to" } else { "is in" };
    Ok(output::line(format_args!("The home of {user} {state} region {region}, version {version}."))?)
}

async fn adopt(args: &AdoptArgs) -> Result<(), Error> {
    let settings = settings::load(&args.ledger.sources())?;
    let Adopted { counts, unbilled } = seatkeeper_server::adopt(&settings, &args.lost, &args.into).await?;
    match counts {
        None => output::line(format_args!("Region {} is adopted by {} already.", args.lost, args.into))?,
        Some(AdoptedCounts { subscribers, licenses, sessions }) => output::line(format_args!(
            "Region {} is adopted by {}: {subscribers} subscribers and {licenses} licenses with {sessions} live \
             sessions.\nNew sessions begin there after the longest TTL on record.",
            args.lost, args.into
        ))?,
    }
    if !unbilled.is_none() {
        output::line(format_args!(
            "NOT BILLED: {} sessions of capacities since the last window of usage, and {} batches that the sink does \
             not have. Bill them from a second copy of the backup, as docs/regions.md says.",
            unbilled.sessions, unbilled.batches
        ))?;
    }
    Ok(())
}
