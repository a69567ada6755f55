//! The process between fork and command: asks the kernel for a signal on the death of `run`, then becomes the
//! command by `exec`.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use clap::Args;

use super::error::RunError;
use super::exec_failure;
use crate::commands::Error;

/// The name of the hidden command.
pub(crate) const EXEC: &str = "__exec";

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The process id of `run`.
    parent: i32,
    /// The file descriptor of the pipe for the reason of a failed `exec`.
    failure: i32,
    /// The file to execute.
    program: PathBuf,
    /// The command as typed, with its arguments.
    #[arg(last = true, required = true)]
    command: Vec<OsString>,
}

/// Becomes the command. Returns only on failure, and then tells `run` the reason.
pub(crate) fn exec(args: &ExecArgs) -> Result<ExitCode, Error> {
    let pipe = exec_failure::take_over(args.failure);
    let reason = become_command(args);
    let told = pipe.and_then(|mut pipe| pipe.write_all(reason.to_string().as_bytes()));
    let error = RunError::Start(reason);
    match told {
        Ok(()) => Ok(ExitCode::from(error.exit_code())),
        // `run` does not know the reason, so stderr must tell.
        Err(_) => Err(error.into()),
    }
}

/// Becomes the command, and returns the reason of a failure.
fn become_command(args: &ExecArgs) -> io::Error {
    if let Err(error) = ask_for_death_signal(args.parent) {
        return error;
    }
    let mut command = Command::new(&args.program);
    if let Some((name, arguments)) = args.command.split_first() {
        command.arg0(name).args(arguments);
    }
    command.exec()
}

/// Makes the kernel send TERM when `run` dies, even by KILL. The kernel forgets the request when the process changes
/// its user or group, or executes a program with set-user-ID, set-group-ID or file capabilities.
#[cfg(target_os = "linux")]
fn ask_for_death_signal(parent: i32) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::TERM))?;
    // A parent that died before the call sends no signal: that case is an error.
    match getppid() {
        Some(pid) if pid.as_raw_nonzero().get() == parent => Ok(()),
        Some(_) | None => Err(io::Error::other("seatkeeper run is gone")),
    }
}

/// Does nothing: other systems have no such signal, and the command outlives a killed `run`.
#[cfg(not(target_os = "linux"))]
fn ask_for_death_signal(_parent: i32) -> io::Result<()> {
    Ok(())
}
