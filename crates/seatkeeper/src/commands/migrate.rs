//! `seatkeeper migrate`: brings the ledger's tables up to date, and stops.

use std::process::ExitCode;

use seatkeeper_ledger::Ledger;

use super::Error;
use crate::cli::DataDirArgs;
use crate::{output, settings};

pub(super) async fn run(args: &DataDirArgs) -> Result<ExitCode, Error> {
    let data_dir = settings::load(&args.sources())?.ledger.data_dir;
    let version = Ledger::migrate(&data_dir).await?;
    output::line(format_args!("the ledger in {} is at version {version}", data_dir.display()))?;
    Ok(ExitCode::SUCCESS)
}
