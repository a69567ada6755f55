//! `seatkeeper jobs …`: shows and triggers the server's periodic jobs through the admin API.

use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use seatkeeper_ledger::jobs::JobName;
use serde::Deserialize;
use serde_json::json;

use super::Error;
use crate::admin::{self, JOBS};
use crate::args::ServerArgs;
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// List the jobs with their states
    List(ListArgs),
    /// List the runs of a job, the newest first
    Runs(RunsArgs),
    /// Make a job due at once
    Run(RunArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RunsArgs {
    /// The job
    #[arg(value_parser = names())]
    job: String,
    /// The most runs to print
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The job
    #[arg(value_parser = names())]
    job: String,
    #[command(flatten)]
    server: ServerArgs,
}

fn names() -> PossibleValuesParser {
    JobName::ALL.map(JobName::as_str).into()
}

/// A job, with the fields for tables.
#[derive(Debug, Deserialize)]
struct Job {
    job: String,
    state: String,
    interval_seconds: u64,
    next_run_at: Option<String>,
    retry_at: Option<String>,
    last_run_at: Option<String>,
    fencing_token: u64,
    failures: u64,
    last_error: Option<String>,
}

/// The answer with all jobs.
#[derive(Debug, Deserialize)]
struct Jobs {
    items: Vec<Job>,
}

/// A run of a job, with the fields for tables.
#[derive(Debug, Deserialize)]
struct Run {
    fencing_token: u64,
    outcome: String,
    scheduled_at: String,
    started_at: String,
    finished_at: Option<String>,
    worker: String,
    error: Option<String>,
}

pub(crate) async fn run(command: JobsCommand) -> Result<ExitCode, Error> {
    match command {
        JobsCommand::List(args) => list(&args).await?,
        JobsCommand::Runs(args) => runs(&args).await?,
        JobsCommand::Run(args) => run_now(&args).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn list(args: &ListArgs) -> Result<(), Error> {
    let api = admin::connect(&args.server)?;
    let answer = api.get(JOBS).await?;
    if args.server.json {
        return Ok(output::json(&answer)?);
    }
    let jobs: Jobs = api.read(JOBS, answer)?;
    let header = ["JOB", "STATE", "EVERY", "DUE", "LAST RUN", "RUNS", "FAILURES", "LAST ERROR"];
    Ok(output::table(header, jobs.items.into_iter().map(job_row))?)
}

fn job_row(job: Job) -> [String; 8] {
    [
        job.job,
        job.state,
        format!("{} s", job.interval_seconds),
        output::cell(job.retry_at.or(job.next_run_at)),
        output::cell(job.last_run_at),
        job.fencing_token.to_string(),
        job.failures.to_string(),
        output::cell(job.last_error),
    ]
}

async fn runs(args: &RunsArgs) -> Result<(), Error> {
    let api = admin::connect(&args.server)?;
    let path = format!("{JOBS}/{}/runs", args.job);
    let listed = api.list(&path, &[], args.limit).await?;
    output::listed(listed, args.server.json, |items| {
        let runs: Vec<Run> = api.read(&path, items)?;
        let header = ["RUN", "OUTCOME", "SCHEDULED", "STARTED", "FINISHED", "WORKER", "ERROR"];
        Ok(output::table(header, runs.into_iter().map(run_row))?)
    })
}

fn run_row(run: Run) -> [String; 7] {
    [
        run.fencing_token.to_string(),
        run.outcome,
        run.scheduled_at,
        run.started_at,
        output::cell(run.finished_at),
        run.worker,
        output::cell(run.error),
    ]
}

async fn run_now(args: &RunArgs) -> Result<(), Error> {
    let api = admin::connect(&args.server)?;
    let answer = api.post(&format!("{JOBS}/{}/run", args.job), json!({})).await?;
    if args.server.json {
        return Ok(output::json(&answer)?);
    }
    Ok(output::line(format_args!("{} is due now", args.job))?)
}
