//! The commands, one file each.

pub(crate) mod audit;
pub(crate) mod bench;
pub(crate) mod config;
pub(crate) mod demo;
mod error;
pub(crate) mod jobs;
pub(crate) mod license;
mod migrate;
pub(crate) mod plan;
pub(crate) mod repair;
pub(crate) mod run;
pub(crate) mod serve;
pub(crate) mod sessions;
pub(crate) mod subscription;
pub(crate) mod token;
pub(crate) mod usage;

use std::process::ExitCode;

pub(crate) use error::{EXIT_FAILED, Error, sentence};

use crate::cli::{Cli, Command};

/// Runs one command to its end.
pub(crate) async fn run(cli: Cli) -> Result<ExitCode, Error> {
    match cli.command {
        Command::Serve(args) => serve::run(&args).await,
        Command::Token(args) => token::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Migrate(args) => migrate::run(&args).await,
        Command::License(command) => license::run(command).await,
        Command::Plan(command) => plan::run(command).await,
        Command::Subscription(command) => subscription::run(command).await,
        Command::Sessions(command) => sessions::run(command).await,
        Command::Audit(command) => audit::run(command).await,
        Command::Jobs(command) => jobs::run(command).await,
        Command::Usage(command) => usage::run(command).await,
        Command::Repair(command) => repair::run(command).await,
        Command::Demo(args) => demo::run(&args).await,
        Command::Bench(args) => bench::run(&args).await,
        Command::Run(args) => run::run(args).await,
        Command::Exec(args) => run::exec(&args),
    }
}
