//! `seatkeeper migrate`: brings the tables up to date, and stops. In PostgreSQL, the registry's tables are migrated as
//! well, so that nodes of any deployment find their tables.

use std::process::ExitCode;

use seatkeeper_ledger::{Ledger, Location};
use seatkeeper_registry::postgres;

use super::Error;
use crate::args::LedgerArgs;
use crate::{output, settings};

pub(crate) async fn run(args: &LedgerArgs) -> Result<ExitCode, Error> {
    let ledger = settings::ledger(&args.sources())?;
    let version = Ledger::migrate(ledger.clone()).await?;
    output::line(format_args!("the ledger in {ledger} is at version {version}"))?;
    if let Location::Postgres(url) = &ledger {
        let version = postgres::migrate(url).await?;
        output::line(format_args!("the registry in {ledger} is at version {version}"))?;
    }
    Ok(ExitCode::SUCCESS)
}
