//! `seatkeeper usage batches`: lists the batches of usage records for the sink.

use std::process::ExitCode;

use clap::Args;
use clap::builder::PossibleValuesParser;
use serde::Deserialize;

use super::Amount;
use crate::admin::{self, USAGE_BATCHES};
use crate::args::ServerArgs;
use crate::commands::Error;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct BatchesArgs {
    /// Only batches in this state
    #[arg(long, value_parser = PossibleValuesParser::new(["pending", "delivered", "dead"]))]
    state: Option<String>,
    /// The most batches to print
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    server: ServerArgs,
}

/// A batch, with the fields for tables.
#[derive(Debug, Deserialize)]
struct Batch {
    batch_id: String,
    window_start: String,
    records: u64,
    usage: Amount,
    state: String,
    attempts: u64,
    last_status: Option<u16>,
    last_error: Option<String>,
}

pub(super) async fn run(args: &BatchesArgs) -> Result<ExitCode, Error> {
    let api = admin::connect(&args.server)?;
    let listed = api.list(USAGE_BATCHES, &[("state", args.state.clone())], args.limit).await?;
    output::listed(listed, args.server.json, |items| {
        let batches: Vec<Batch> = api.read(USAGE_BATCHES, items)?;
        let header =
            ["BATCH ID", "WINDOW", "RECORDS", "USAGE", "STATE", "ATTEMPTS", "LAST STATUS", "LAST ERROR"];
        Ok::<_, Error>(output::table(header, batches.into_iter().map(row))?)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn row(batch: Batch) -> [String; 8] {
    [
        batch.batch_id,
        batch.window_start,
        batch.records.to_string(),
        batch.usage.to_string(),
        batch.state,
        batch.attempts.to_string(),
        output::cell(batch.last_status),
        output::cell(batch.last_error),
    ]
}
