//! `seatkeeper repair usage`: lets a promoted standby or a restored backup record usage. Without `--apply` nothing
//! changes.

use std::process::ExitCode;

use clap::Args;
use seatkeeper_ledger::Ledger;

use crate::args::LedgerArgs;
use crate::commands::Error;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// Let usage be recorded; without it, only print the last window
    #[arg(long)]
    apply: bool,
}

pub(super) async fn run(args: &UsageArgs) -> Result<ExitCode, Error> {
    let (ledger, _) = super::open(&args.ledger).await?;
    let repaired = repair(&ledger, args.apply).await;
    ledger.close().await;
    repaired
}

async fn repair(ledger: &Ledger, apply: bool) -> Result<ExitCode, Error> {
    if !ledger.is_usage_held().await? {
        output::line("Usage is recorded: this ledger is the one whose windows the sink knows.")?;
        return Ok(ExitCode::SUCCESS);
    }
    output::line("Usage is held: this ledger is a promoted standby or a restored backup.")?;
    match ledger.usage_metered_until().await? {
        Some(until) => output::line(format_args!("Its last window ends at {}.", output::date(until)))?,
        None => output::line("It has no window.")?,
    }
    if !apply {
        output::line(
            "Nothing was changed. Ask again with --apply once the sink has undone, and forgotten, every window that \
             ends later.",
        )?;
        return Ok(ExitCode::SUCCESS);
    }
    ledger.confirm_usage().await?;
    output::line("Usage is recorded from there on, within five minutes.")?;
    Ok(ExitCode::SUCCESS)
}
