//! The program `seatkeeper`: the server, and the commands that manage it from a terminal.

mod admin;
mod api_client;
mod args;
mod cli;
mod commands;
mod duration;
mod logging;
mod output;
mod settings;
mod signals;
#[cfg_attr(not(feature = "otlp"), path = "traces/absent.rs")]
mod traces;

use std::process::ExitCode;

use clap::Parser;

use crate::cli::{Cli, Command};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match runtime_for(&cli.command) {
        Ok(runtime) => runtime,
        Err(error) => return commands::Error::Runtime(error).report(),
    };
    let result = runtime.block_on(cli::dispatch(cli));
    // A DNS look-up or a read of a file may hang in a blocking thread. The drop of a runtime waits for such threads without a
    // limit. By now the seats are released, and the ledger is closed.
    runtime.shutdown_background();
    result.unwrap_or_else(|error| error.report())
}

/// Returns the runtime of a command. Only the server uses all cores: a load generator next to it must leave
/// cores free.
fn runtime_for(command: &Command) -> std::io::Result<tokio::runtime::Runtime> {
    let mut builder = match command {
        Command::Serve(_) => tokio::runtime::Builder::new_multi_thread(),
        Command::Token(_)
        | Command::Config(_)
        | Command::Migrate(_)
        | Command::License(_)
        | Command::Plan(_)
        | Command::Subscription(_)
        | Command::Sessions(_)
        | Command::Audit(_)
        | Command::Jobs(_)
        | Command::Usage(_)
        | Command::Region(_)
        | Command::Repair(_)
        | Command::Demo(_)
        | Command::Bench(_)
        | Command::Run(_)
        | Command::Exec(_)
        | Command::Keep(_) => tokio::runtime::Builder::new_current_thread(),
    };
    builder.enable_all().build()
}
