//! Heartbeats for a stopped `run`: a process of its own keeps the seats until `run` continues.

use std::env;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::process::{ExitCode, Stdio};

use clap::Args;
use rustix::process::Pid;
use seatkeeper_client::{Client, Seat, Wait};
use tokio::process::{Child, Command};

use super::args::RunArgs;
use super::holder::RunHolder;
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
    /// Other runs may have the seats as well.
    #[arg(long)]
    holder_shared: bool,
    /// The sessions of the seats.
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
        let mut command = Command::new(env::current_exe()?);
        command.arg(KEEP);
        if let Some(HeldSeat { holder, .. }) = seats.first() {
            command.args(["--holder-machine", &holder.machine, "--holder-instance", &holder.instance]);
            command.args(holder.is_shared.then_some("--holder-shared"));
        }
        for session in seats.iter().filter_map(|held| held.seat.session_id()) {
            command.args(["--session", &session]);
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

/// Keeps the seats of a stopped `run` until the pipe closes.
pub(crate) async fn keep(args: KeepArgs) -> Result<ExitCode, Error> {
    let KeepArgs { holder_machine, holder_instance, holder_shared, sessions, run } = args;
    let holder = RunHolder { machine: holder_machine, instance: holder_instance, is_shared: holder_shared };
    let clients = Clients::new(&run)?;
    let mut kept = Vec::new();
    let keep_all = async {
        for (license, client) in clients.iter() {
            kept.extend(keep_one(client, license, &holder, &sessions).await);
        }
        std::future::pending::<()>().await;
    };
    // `run` writes nothing: the read ends at the end of `run`.
    let pipe = tokio::task::spawn_blocking(|| io::stdin().read(&mut [0]));
    tokio::select! {
        _ = pipe => {}
        () = keep_all => {}
    }
    kept.into_iter().for_each(Seat::leave);
    Ok(ExitCode::SUCCESS)
}

/// Takes up the session of a seat. An ended session is not replaced: `run` decides on continuing.
async fn keep_one(client: &Client, license: &str, holder: &RunHolder, sessions: &[String]) -> Option<Seat> {
    // The acquire of a holder with a seat resumes the session, and the wait outlasts an outage of the server.
    let seat = request(client, license, holder).wait(Wait::Forever).acquire().await.ok()?;
    if seat.session_id().is_some_and(|session| sessions.contains(&session)) {
        return Some(seat);
    }
    if holder.is_shared {
        // Another run may have the session. A session without a run ends with the TTL.
        seat.leave();
    } else {
        // A session without an answer to the release ends with the TTL.
        let _ = seat.release().await;
    }
    None
}
