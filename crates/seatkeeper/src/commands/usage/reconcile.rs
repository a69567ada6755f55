//! `seatkeeper usage reconcile`: compares held with recorded and delivered usage.

use std::io;
use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;

use super::Amount;
use crate::admin::{self, USAGE_RECONCILIATION};
use crate::args::ServerArgs;
use crate::commands::{EXIT_FAILED, Error};
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct ReconcileArgs {
    /// Windows that start at this time or later: 2030-01-01T00:00:00Z
    #[arg(long, value_name = "TIME")]
    from: String,
    /// Windows that start before this time
    #[arg(long, value_name = "TIME")]
    to: String,
    #[command(flatten)]
    server: ServerArgs,
}

/// The sums of usage in a span, with the first difference.
#[derive(Debug, Deserialize)]
struct Books {
    from: Option<String>,
    to: Option<String>,
    windows: u64,
    #[serde(flatten)]
    sums: Sums,
    agrees: bool,
    first_difference: Option<Difference>,
}

/// The sums of usage in a window.
#[derive(Debug, Deserialize)]
struct Difference {
    window_start: String,
    window_end: String,
    #[serde(flatten)]
    sums: Sums,
}

#[derive(Debug, Deserialize)]
struct Sums {
    held: Amount,
    recorded: Amount,
    delivered: Amount,
    pending: Amount,
    dead: Amount,
}

pub(super) async fn run(args: &ReconcileArgs) -> Result<ExitCode, Error> {
    let api = admin::connect(&args.server)?;
    let span = [("from", Some(args.from.clone())), ("to", Some(args.to.clone()))];
    let answer = api.get_with(USAGE_RECONCILIATION, &span).await?;
    let books: Books = api.read(USAGE_RECONCILIATION, answer.clone())?;
    if args.server.json {
        output::json(&answer)?;
    } else {
        print(&books)?;
    }
    Ok(if books.agrees { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAILED) })
}

fn print(books: &Books) -> io::Result<()> {
    let span = match (&books.from, &books.to) {
        (Some(from), Some(to)) => format!("{}, from {from} to {to}", books.windows),
        _ => "0".to_owned(),
    };
    output::line(format_args!("windows    {span}"))?;
    print_sums(&books.sums)?;
    match &books.first_difference {
        None => output::line("They agree: all that was held is recorded and delivered."),
        Some(first) => {
            output::line("THEY DO NOT AGREE. The first window that differs:")?;
            output::line(format_args!("window     {} to {}", first.window_start, first.window_end))?;
            print_sums(&first.sums)
        }
    }
}

fn print_sums(sums: &Sums) -> io::Result<()> {
    output::line(format_args!("held       {}", sums.held))?;
    output::line(format_args!("recorded   {}", sums.recorded))?;
    output::line(format_args!(
        "delivered  {}  (on its way: {}, refused by the sink: {})",
        sums.delivered, sums.pending, sums.dead
    ))
}
