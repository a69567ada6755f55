//! Starts this program again, in the role of a hidden command.

use std::env;
use std::io;

use tokio::process::Command;

/// Returns a command that starts this program again. The caller adds the name of a hidden command, by which the process
/// knows its role.
#[cfg(target_os = "linux")]
pub(super) fn command() -> io::Result<Command> {
    // After the upgrade of a package, the path of the file leads to another file or to none. The kernel's link leads to the
    // file of this process as long as the process runs.
    let mut command = Command::new("/proc/self/exe");
    command.arg0(env::args_os().next().unwrap_or_else(|| env!("CARGO_PKG_NAME").into()));
    Ok(command)
}

/// Returns a command that starts this program again, by the path of its file. The caller adds the name of a hidden command,
/// by which the process knows its role.
#[cfg(not(target_os = "linux"))]
pub(super) fn command() -> io::Result<Command> {
    env::current_exe().map(Command::new)
}

/// Names this process for `ps`, because the kernel names a process after its file, and `exe` tells nobody what runs.
#[cfg(target_os = "linux")]
pub(super) fn set_process_name() {
    // The name is for people alone.
    let _ = std::fs::write("/proc/self/comm", env!("CARGO_PKG_NAME"));
}

/// Does nothing: the process has the name of its file.
#[cfg(not(target_os = "linux"))]
pub(super) fn set_process_name() {}
