//! The benchmark of the product's speed targets, all in one run:
//!
//! ```text
//! cargo bench -p seatkeeper --bench speed -- [--quick] [--json] [nodes|many|regions|hostile|instructions|versus]
//! ```
//!
//! - Without a role: the embedded server.
//! - `nodes`: a node over Redis and PostgreSQL, which the benchmark starts.
//! - `many [--sessions N]`: three nodes with N live sessions.
//! - `regions`: a home region beside a server without regions, and a region that forwards.
//! - `instructions`: the embedded server's instructions for a request, counted by Callgrind (install valgrind).
//! - `hostile`: well-behaved clients beside hostile clients.
//! - `versus PROGRAM`: this build beside another build.
//!
//! Servers run as child processes and share the machine with the load. The sides of a comparison take turns,
//! round by round, so that noise of the machine hits both sides; a line shows the median of the rounds'
//! ratios. The program reports a missed target, and fails only if a measurement fails.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

mod args;
mod bare;
mod beside_thin;
mod child;
mod contest;
mod crowd;
mod effort;
mod error;
mod faultless;
mod hostile;
mod instructions;
mod many;
mod memory;
mod naive;
mod nodes;
mod pool_size;
mod process;
mod product;
mod records;
mod regions;
mod renewal;
mod thin;
mod turns;
mod verdict;
mod versus;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Role};
use effort::Effort;
use error::Error;
use tokio::runtime::Runtime;
use verdict::Line;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.role {
        None => measure(&args, embedded),
        Some(Role::Nodes) => measure(&args, over_redis_and_postgres),
        Some(Role::Many { sessions }) => {
            measure(&args, |effort, runtime| runtime.block_on(many::run(effort, *sessions)))
        }
        Some(Role::Versus { other, program, nodes }) => {
            let programs = [program.as_deref().unwrap_or(product::BINARY.as_ref()), other];
            measure(&args, |effort, runtime| runtime.block_on(versus::run(effort, programs, *nodes)))
        }
        Some(Role::Regions) => measure(&args, |effort, runtime| runtime.block_on(regions::run(effort))),
        Some(Role::Instructions) => measure(&args, |_, runtime| runtime.block_on(instructions::run())),
        Some(Role::Hostile) => measure(&args, beside_hostile_clients),
        Some(Role::Attack { attack, address, token }) => hostile::attack::go(*attack, address, token),
        Some(Role::Bare) => bare::serve(),
        Some(Role::Thin { redis }) => thin::serve(redis),
        Some(Role::Naive { database }) => naive::serve_sqlite(database),
        Some(Role::NaivePostgres { url, connections }) => naive::serve_postgres(url, *connections),
        Some(Role::Memory { shape, sessions }) => memory::fill(*shape, *sessions),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("speed: {}", error.with_causes());
            ExitCode::FAILURE
        }
    }
}

fn measure(args: &Args, lines: impl Fn(Effort, &Runtime) -> Result<Vec<Line>, Error>) -> Result<(), Error> {
    // The load runs on one thread, so that the servers have the rest of the machine.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    let lines = lines(args.effort(), &runtime)?;
    if args.json { verdict::print_json(&lines) } else { verdict::print_table(&lines) }
}

fn embedded(effort: Effort, runtime: &Runtime) -> Result<Vec<Line>, Error> {
    let mut lines = runtime.block_on(contest::run(effort))?;
    lines.extend(runtime.block_on(pool_size::run(effort))?);
    lines.extend(memory::run(effort)?);
    Ok(lines)
}

fn beside_hostile_clients(effort: Effort, runtime: &Runtime) -> Result<Vec<Line>, Error> {
    runtime.block_on(hostile::run(effort))
}

fn over_redis_and_postgres(effort: Effort, runtime: &Runtime) -> Result<Vec<Line>, Error> {
    let mut lines = runtime.block_on(beside_thin::run(effort))?;
    lines.extend(runtime.block_on(nodes::run(effort))?);
    Ok(lines)
}
