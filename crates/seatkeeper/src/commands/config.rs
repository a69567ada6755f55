//! `seatkeeper config`: the effective settings.

use std::process::ExitCode;

use super::Error;
use crate::cli::SettingsArgs;
use crate::{output, settings};

pub(super) fn run(args: &SettingsArgs) -> Result<ExitCode, Error> {
    let settings = settings::load(&args.sources())?;
    output::line(toml::to_string(&settings)?.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
