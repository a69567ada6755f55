//! `seatkeeper usage send`: sends refused batches again.

use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::admin::{self, USAGE_BATCHES};
use crate::args::ServerArgs;
use crate::commands::Error;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    /// The batch
    #[arg(value_name = "BATCH_ID", required_unless_present = "all_dead")]
    batch: Option<Uuid>,
    /// Every batch that the sink refused
    #[arg(long, conflicts_with = "batch")]
    all_dead: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// The answer for all dead batches.
#[derive(Debug, Deserialize)]
struct Sent {
    sent: u64,
}

pub(super) async fn run(args: &SendArgs) -> Result<ExitCode, Error> {
    let api = admin::connect(&args.server)?;
    let path = match args.batch {
        Some(batch) => format!("{USAGE_BATCHES}/{batch}/send"),
        None => format!("{USAGE_BATCHES}/send"),
    };
    let answer = api.post(&path, json!({})).await?;
    if args.server.json {
        output::json(&answer)?;
    } else if args.all_dead {
        let Sent { sent } = api.read(&path, answer)?;
        output::line(format_args!("on their way: {sent}"))?;
    } else {
        output::line("on its way")?;
    }
    Ok(ExitCode::SUCCESS)
}
