//! `seatkeeper migrate`: brings the ledger's tables up to date, and stops.

use std::process::ExitCode;

use seatkeeper_ledger::{Ledger, Location};

use super::Error;
use crate::cli::DataDirArgs;
use crate::{output, settings};

pub(super) async fn run(args: &DataDirArgs) -> Result<ExitCode, Error> {
    let ledger = settings::load(&args.sources())?.ledger.location().map_err(settings::Error::Misfit)?;
    let version = Ledger::migrate(ledger.clone()).await?;
    match ledger {
        Location::Directory(dir) => {
            output::line(format_args!("the ledger in {} is at version {version}", dir.display()))?;
        }
        Location::Postgres(url) => {
            output::line(format_args!("the ledger in {url} is at version {version}"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
