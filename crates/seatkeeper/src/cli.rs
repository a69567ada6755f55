//! The command line: its commands, and the dispatch to each. A new command is a file in `commands`, a variant
//! of [`Command`] and an arm of [`dispatch`].

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::args::LedgerArgs;
use crate::commands::{
    Error, audit, bench, config, demo, jobs, license, migrate, plan, region, repair, run, serve, sessions,
    subscription, token, usage,
};

/// Hands out a limited number of seats, keeps seats alive by heartbeats, frees the seats of silent holders,
/// and can prove who held what.
#[derive(Debug, Parser)]
#[command(version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes: 0 it is done; 1 it failed, or a check found something; 2 wrong arguments or settings.
Settings come from a TOML file, SEATKEEPER_... variables and flags; the later wins.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the server; needs no arguments
    Serve(serve::ServeArgs),
    /// Sign a token and print it
    Token(token::TokenArgs),
    /// Print the effective settings as TOML, secrets masked; check them; explain them
    Config(config::ConfigArgs),
    /// Bring the tables of the ledger and of the registry in PostgreSQL up to date, and stop
    Migrate(LedgerArgs),
    /// Create, read, change and end licenses
    #[command(subcommand)]
    License(license::LicenseCommand),
    /// Create, read, change and retire plans
    #[command(subcommand)]
    Plan(plan::PlanCommand),
    /// Create, read, change and cancel subscriptions
    #[command(subcommand)]
    Subscription(subscription::SubscriptionCommand),
    /// Search and end sessions
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    /// Read the audit log, and prove it
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// See periodic work, and run it at once
    #[command(subcommand)]
    Jobs(jobs::JobsCommand),
    /// Show the use of capacities, and its delivery to the sink
    #[command(subcommand)]
    Usage(usage::UsageCommand),
    /// See the regions, and move homes between them
    #[command(subcommand)]
    Region(region::RegionCommand),
    /// Repair a state that servers cannot repair by themselves
    #[command(subcommand)]
    Repair(repair::RepairCommand),
    /// Tell the whole story in a terminal, on a private server
    Demo(demo::DemoArgs),
    /// Load a server, and check meanwhile that no license is ever above its seats
    Bench(bench::BenchArgs),
    /// Run a command while holding a seat of a license
    Run(run::RunArgs),
    /// Become the command of `run`, which gets a signal when `run` is killed
    #[command(name = run::EXEC, hide = true)]
    Exec(run::ExecArgs),
    /// Keep the seats of a stopped `run`
    #[command(name = run::KEEP, hide = true)]
    Keep(run::KeepArgs),
}

/// Runs a command to its end, and returns the exit code of the process.
pub(crate) async fn dispatch(cli: Cli) -> Result<ExitCode, Error> {
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
        Command::Region(command) => region::run(command).await,
        Command::Repair(command) => repair::run(command).await,
        Command::Demo(args) => demo::run(&args).await,
        Command::Bench(args) => bench::run(&args).await,
        Command::Run(args) => run::run(args).await,
        Command::Exec(args) => run::exec(&args),
        Command::Keep(args) => run::keep(args).await,
    }
}
