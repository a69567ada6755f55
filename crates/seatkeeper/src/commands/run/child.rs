//! Starts the command of `run`.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::AsRawFd as _;
use std::path::Path;

use rustix::process::{Pid, getpgrp};
use rustix::termios::tcgetpgrp;
use tokio::process::Child;

use super::args::RunArgs;
use super::exec::EXEC;
use super::exec_failure::{self, ExecFailure};
use super::group::Group;
use super::itself;
use super::seats::HeldSeat;
use crate::settings::{VARIABLE_LICENSE_ID, VARIABLE_SESSION_ID, VARIABLE_TOKEN};

/// Starts the command with the seats' ids in its environment, and without the token unless `--pass-token` is given.
pub(super) fn start(
    program: &Path,
    args: &RunArgs,
    seats: &[HeldSeat],
) -> io::Result<(Child, Group, ExecFailure)> {
    let (failure, writer) = exec_failure::pipe()?;
    let numbers = [std::process::id().to_string(), writer.as_raw_fd().to_string()];
    let mut command = itself::command()?;
    command.arg(EXEC).args(numbers).arg(program).arg("--").arg(args.program());
    command.args(args.arguments()).kill_on_drop(true);
    if !args.pass_token {
        command.env_remove(VARIABLE_TOKEN);
    }
    if let Some(first) = seats.first() {
        let ids =
            [(VARIABLE_SESSION_ID, first.seat.session_id()), (VARIABLE_LICENSE_ID, first.seat.license_id())];
        command.envs(ids.into_iter().filter_map(|(name, id)| Some((name, id?))));
    }
    let terminal = io::stdin().is_terminal() || is_in_foreground();
    if !terminal {
        command.process_group(0);
    }
    let child = command.spawn()?;
    drop(writer);
    let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let pid = pid.ok_or_else(|| io::Error::other("the command ended before it had a process id"))?;
    Ok((child, if terminal { Group::Terminal(pid) } else { Group::Own(pid) }, failure))
}

/// Returns `true` if `run` is in the foreground of its terminal. The command may then open `/dev/tty`, also with another
/// standard input: the kernel stops a process outside of the foreground group that reads from the terminal.
fn is_in_foreground() -> bool {
    File::open("/dev/tty").is_ok_and(|tty| tcgetpgrp(&tty).is_ok_and(|foreground| foreground == getpgrp()))
}
