//! `seatkeeper repair clock`: sets registry time back to the true time, or confirms a right time after a long outage.
//! Without `--apply` nothing changes.

use std::process::ExitCode;

use clap::Args;
use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_ledger::clock_repair::ClockRepair;
use seatkeeper_ledger::trusted_time::OUTAGE_MAX;
use seatkeeper_ledger::{Ledger, Location};
use seatkeeper_registry::postgres::{RegistryRepair, repair_clock};
use seatkeeper_server::wall_clock;

use crate::args::LedgerArgs;
use crate::commands::{EXIT_FAILED, Error};
use crate::output;

/// Registry time in PostgreSQL may be ahead of the true time by this much without being wrong.
const AHEAD_TOLERATED: Span = Span::from_secs(60);

#[derive(Debug, Args)]
pub(crate) struct ClockArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// Change the ledger; without it, only print the changes
    #[arg(long)]
    apply: bool,
    /// The operator's name for the record
    #[arg(long, value_name = "NAME", env = "USER", default_value = "unknown")]
    by: String,
}

pub(super) async fn run(args: &ClockArgs) -> Result<ExitCode, Error> {
    let to = now();
    let (ledger, location) = super::open(&args.ledger).await?;
    let repaired = repair(&ledger, &location, to, args).await;
    ledger.close().await;
    repaired
}

/// Repairs the registry's time first. That time is not in the ledger's record, so a repair that breaks off in
/// between is found again.
async fn repair(
    ledger: &Ledger,
    location: &Location,
    to: RegistryTime,
    args: &ClockArgs,
) -> Result<ExitCode, Error> {
    // A plan that must be refused fails before any change.
    let planned = ledger.plan_clock_repair(to, &args.by).await?;
    let registry = match location {
        Location::Postgres(url) => repair_clock(url, to, false).await?,
        Location::Directory(_) => None,
    };
    let waiting = registry.map_or(0, |registry| registry.waiting);
    let registry = registry.filter(|registry| registry.latest > to + AHEAD_TOLERATED);
    if planned.is_none() && registry.is_none() {
        output::line(format_args!(
            "Registry time is right: nothing on record is later than {}.",
            output::date(to)
        ))?;
        return confirm(ledger, to, args.apply).await;
    }
    if waiting > 0 {
        output::line(format_args!(
            "Refused: {waiting} events wait for the ledger. Start a node, stop it in good order, and ask again."
        ))?;
        return Ok(ExitCode::from(EXIT_FAILED));
    }
    if let Some(RegistryRepair { latest, .. }) = registry {
        output::line(format_args!("Registry time in PostgreSQL is {}.", output::date(latest)))?;
    }
    if let Some(planned) = &planned {
        print(&planned.repair)?;
    }
    if !args.apply {
        output::line("Nothing was changed. Ask again with --apply to set registry time right.")?;
        return Ok(ExitCode::SUCCESS);
    }
    if let (Location::Postgres(url), Some(_)) = (location, registry) {
        repair_clock(url, to, true).await?;
    }
    if let Some(planned) = planned {
        planned.apply().await?;
    }
    output::line(format_args!("Registry time goes on from {}.", output::date(to)))?;
    Ok(ExitCode::SUCCESS)
}

/// Confirms that `to` is the true time, so that jobs delete history and meter usage up to this time again.
async fn confirm(ledger: &Ledger, to: RegistryTime, apply: bool) -> Result<ExitCode, Error> {
    let trusted = ledger.trusted_time().await?;
    if let Some(trusted) = trusted.filter(|trusted| to > *trusted + OUTAGE_MAX) {
        output::line(format_args!(
            "History is deleted, and usage metered, by an earlier time: {} was the last that jobs trusted.",
            output::date(trusted)
        ))?;
        output::line(if apply {
            "From now on, jobs go by the true time."
        } else {
            "Ask again with --apply if this machine shows the true time."
        })?;
    }
    if apply {
        ledger.confirm_time(to).await?;
    }
    Ok(ExitCode::SUCCESS)
}

fn print(repair: &ClockRepair) -> std::io::Result<()> {
    let ClockRepair { repaired_at, wrong_until, audit_head, actor, sessions } = repair;
    output::pairs([
        ("latest time on record", output::date(*wrong_until)),
        ("true time", output::date(*repaired_at)),
        ("newest audit record", audit_head.to_string()),
        ("live sessions with a full TTL", sessions.to_string()),
        ("by", actor.clone()),
    ])
}

/// Returns the time shown by this machine.
fn now() -> RegistryTime {
    RegistryTime::from_millis(u64::try_from(wall_clock::now().timestamp_millis()).unwrap_or_default())
}
