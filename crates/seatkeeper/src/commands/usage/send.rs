//! `seatkeeper usage send`: sends a refused batch again.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;
use uuid::Uuid;

use crate::admin::{self, USAGE_BATCHES};
use crate::args::ServerArgs;
use crate::commands::Error;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The batch
    #[arg(value_name = "BATCH_ID")]
    batch: Uuid,
    #[command(flatten)]
    server: ServerArgs,
}

pub(super) async fn run(args: &SendArgs) -> Result<ExitCode, Error> {
    let api = admin::connect(&args.server)?;
    let answer = api.post(&format!("{USAGE_BATCHES}/{}/send", args.batch), json!({})).await?;
    if args.server.json {
        output::json(&answer)?;
    } else {
        output::line("on its way")?;
    }
    Ok(ExitCode::SUCCESS)
}
