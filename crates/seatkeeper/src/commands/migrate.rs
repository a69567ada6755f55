//! `seatkeeper migrate`: brings the ledger's tables up to date, and stops.

use std::process::ExitCode;

use seatkeeper_ledger::Ledger;

use super::Error;
use crate::args::LedgerArgs;
use crate::{output, settings};

pub(crate) async fn run(args: &LedgerArgs) -> Result<ExitCode, Error> {
    let ledger = settings::ledger(&args.sources())?;
    let version = Ledger::migrate(ledger.clone()).await?;
    output::line(format_args!("the ledger in {ledger} is at version {version}"))?;
    Ok(ExitCode::SUCCESS)
}
