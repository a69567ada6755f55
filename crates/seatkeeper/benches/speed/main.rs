//! What the speed targets of the product are measured by, all in one run:
//! `cargo bench -p seatkeeper --bench speed -- [--quick] [--json]`.
//!
//! Servers run as processes of their own and share the machine with the load. What is compared is
//! measured in turns, round by round, so that a noisy machine is noisy to both sides; a line is the
//! median of the rounds' ratios. A miss is printed as one: the program fails only if it cannot measure.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark prints its figures")]

mod args;
mod bare;
mod child;
mod contest;
mod crowd;
mod error;
mod memory;
mod naive;
mod pool_size;
mod process;
mod product;
mod verdict;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Role};
use error::Error;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match &args.role {
        None => measure(&args),
        Some(Role::Bare) => bare::serve(),
        Some(Role::Naive { database }) => naive::serve(database),
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

fn measure(args: &Args) -> Result<(), Error> {
    let effort = args.effort();
    // The load has one thread, so that the servers find the rest of the machine free.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::Runtime)?;
    let mut lines = runtime.block_on(contest::run(effort))?;
    lines.extend(runtime.block_on(pool_size::run(effort))?);
    lines.extend(memory::run(effort)?);
    if args.json { verdict::print_json(&lines) } else { verdict::print_table(&lines) }
}
