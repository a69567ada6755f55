//! `seatkeeper usage list`: lists the windows of metering, the newest first.

use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;

use super::Amount;
use crate::admin::{self, USAGE};
use crate::args::ServerArgs;
use crate::commands::Error;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Only windows that start at this time or later: 2030-01-31T00:00:00Z
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only windows that start before this time
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// The most windows to print
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    server: ServerArgs,
}

/// A window, with the fields for tables.
#[derive(Debug, Deserialize)]
struct Window {
    window_start: String,
    window_end: String,
    records: u64,
    recorded: Amount,
    delivered: Amount,
    pending: Amount,
    dead: Amount,
}

pub(super) async fn run(args: &ListArgs) -> Result<ExitCode, Error> {
    let api = admin::connect(&args.server)?;
    let filters = [("from", args.from.clone()), ("to", args.to.clone())];
    let listed = api.list(USAGE, &filters, args.limit).await?;
    output::listed(listed, args.server.json, |items| {
        let windows: Vec<Window> = api.read(USAGE, items)?;
        let header = ["FROM", "TO", "SESSIONS", "RECORDED", "DELIVERED", "PENDING", "DEAD"];
        Ok::<_, Error>(output::table(header, windows.into_iter().map(row))?)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn row(window: Window) -> [String; 7] {
    [
        window.window_start,
        window.window_end,
        window.records.to_string(),
        window.recorded.to_string(),
        window.delivered.to_string(),
        window.pending.to_string(),
        window.dead.to_string(),
    ]
}
