//! `seatkeeper audit verify`: the proof, from the audit log alone.

use std::path::Path;
use std::process::ExitCode;

use clap::Args;

use crate::cli::DataDirArgs;
use crate::commands::Error;

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    #[command(flatten)]
    data: DataDirArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) struct V;
impl V {
    pub(crate) fn is_proof(&self) -> bool {
        true
    }
}

pub(crate) async fn run(args: &VerifyArgs) -> Result<ExitCode, Error> {
    let _ = (&args.data, args.json);
    Ok(ExitCode::SUCCESS)
}
pub(crate) async fn verify(_: &Path, _: impl Fn(u64, u64)) -> Result<V, seatkeeper_ledger::Error> {
    Ok(V)
}
pub(crate) fn print(_: &V) -> std::io::Result<()> {
    crate::output::line("never above its limit")
}
