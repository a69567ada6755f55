//! `seatkeeper run`: runs a command while holding a seat, and releases the seat on every way out.

mod args;
mod changes;
mod child;
mod error;
mod exec;
mod exec_failure;
mod group;
mod holder;
mod itself;
mod job;
mod keeper;
mod program;
mod report;
mod seats;
mod share;
mod signals;
mod story;
mod supervise;

use std::fs::OpenOptions;
use std::process::ExitCode;
use std::time::Instant;

pub(crate) use args::RunArgs;
pub(crate) use error::RunError;
pub(crate) use exec::{EXEC, ExecArgs, exec};
pub(crate) use keeper::{KEEP, KeepArgs, keep};

use super::Error;
use report::Report;
use seats::Clients;
use signals::Signals;
use story::Story;

/// Finds the command, takes the seats, runs the command, releases the seats, and writes the report.
pub(crate) async fn run(args: RunArgs) -> Result<ExitCode, Error> {
    let mut report = Report::default();
    if let Some(path) = &args.report {
        // A file that cannot be written must not cost the exit code of the command.
        OpenOptions::new().create(true).append(true).open(path).map_err(RunError::ReportFile)?;
    }
    // A system that starts no thread starts no command either.
    let story = Story::new(args.quiet).map_err(RunError::Start)?;
    let ended = held(&args, &mut report, &story).await;
    let code = match &ended {
        Ok(code) => *code,
        Err(error) => error.exit_code(),
    };
    report.finish(code, ended.as_ref().err());
    if let Err(error) = &ended {
        story.fail(error);
    }
    if let Some(path) = &args.report
        && let Err(error) = report.write(path)
    {
        // The command has run: a full disk must not replace the command's exit code.
        story.fail(&RunError::Report(error));
    }
    Ok(ExitCode::from(code))
}

async fn held(args: &RunArgs, report: &mut Report, story: &Story) -> Result<u8, RunError> {
    let program = program::find(args.program())?;
    let mut signals = Signals::listen().map_err(RunError::Signals)?;
    let clients = Clients::new(args)?;
    let began = Instant::now();
    let seats = seats::acquire(&clients, args, &mut signals, story).await;
    report.wait(began.elapsed());
    let seats = seats?;
    report.admit(&seats);
    let ended = supervise::run(&program, args, &seats, &mut signals, story).await;
    // Requests in flight end with the runtime, and the runtime ends with `run`.
    seats::release(seats, story).await;
    let ended = ended?;
    report.end(&ended);
    Ok(ended.exit_code())
}
