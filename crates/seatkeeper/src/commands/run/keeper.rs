//! Heartbeats for a stopped `run`: a process of its own keeps the seats until `run` continues.

use std::env;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::process::{ExitCode, Stdio};

use clap::Args;
use rustix::process::Pid;
use seatkeeper_client::Seat;
use tokio::process::Child;

use super::args::RunArgs;
use super::holder::RunHolder;
use super::itself;
use super::seats::{Clients, HeldSeat, request};
use crate::commands::Error;

/// The name of the hidden command.
pub(crate) const KEEP: &str = "__keep";

#[derive(Debug, Args)]
pub(crate) struct KeepArgs {
    /// The machine of the seats.
    #[arg(long)]
    holder_machine: String,
    /// The instance of the seats.
    #[arg(long)]
    holder_instance: String,
    /// The sessions of the seats, in the order of the licenses.
    #[arg(long = "session")]
    sessions: Vec<String>,
    #[command(flatten)]
    run: RunArgs,
}

/// A process that keeps the seats of a stopped `run`.
#[derive(Debug)]
pub(super) struct Keeper {
    child: Child,
}

impl Keeper {
    /// Starts the process, with the arguments of this process and a pipe that closes at the end of `run`.
    pub(super) fn start(seats: &[HeldSeat]) -> io::Result<Self> {
        let mut command = itself::command()?;
        command.arg(KEEP);
        if let Some(HeldSeat { holder, .. }) = seats.first() {
            command.args(["--holder-machine", &holder.machine, "--holder-instance", &holder.instance]);
        }
        for held in seats {
            command.args(["--session", &held.seat.session_id().unwrap_or_default()]);
        }
        // The first two arguments are the program and `run`.
        command.args(env::args_os().skip(2).collect::<Vec<OsString>>());
        // A separate group, because the terminal's signals are for the command.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Self { child: command.spawn()? })
    }

    /// Returns the id of the process.
    pub(super) fn pid(&self) -> Option<Pid> {
        self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()))
    }

    /// Ends the process without a release: `run` has the seats again.
    pub(super) async fn end(mut self) {
        // A process that has ended by itself is no error.
        let _ = self.child.kill().await;
    }
}

/// Keeps the seats of a stopped `run` until the pipe closes. An ended session is not replaced: `run` decides on continuing.
pub(crate) async fn keep(args: KeepArgs) -> Result<ExitCode, Error> {
    itself::set_process_name();
    let KeepArgs { holder_machine, holder_instance, sessions, run } = args;
    let holder = RunHolder { machine: holder_machine, instance: holder_instance, is_shared: false };
    let clients = Clients::new(&run)?;
    let mut kept = Vec::new();
    for ((license, client), session) in clients.iter().zip(sessions) {
        // A client that is open resumes every session.
        kept.extend(request(client, license, &holder).resume(session));
    }
    // `run` writes nothing: the read ends at the end of `run`.
    let _ = tokio::task::spawn_blocking(|| io::stdin().read(&mut [0])).await;
    kept.into_iter().for_each(Seat::leave);
    Ok(ExitCode::SUCCESS)
}
