//! The process group of the command.

use std::fs;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, kill_current_process_group, kill_process, kill_process_group,
    test_kill_process_group, waitpgid, waitpid,
};

/// Makes `run` the subreaper of orphaned descendants, so that no zombie stays.
#[cfg(target_os = "linux")]
pub(super) fn adopt_orphans() {
    // Without kernel support, orphans go to the system's first process.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
}

/// Does nothing: orphans go to the system's first process.
#[cfg(not(target_os = "linux"))]
pub(super) fn adopt_orphans() {}

/// Reaps ended adopted processes: a command of weeks must leave no zombies. `own` lists the processes started by `run`,
/// whose status tokio awaits. Systems without `/proc` have adopted no process.
pub(super) fn reap_orphans(own: &[Pid]) {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for children in threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok()) {
        let children = children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?));
        for orphan in children.filter(|pid| !own.contains(pid)) {
            // A process that still runs is left alone.
            let _ = waitpid(Some(orphan), WaitOptions::NOHANG);
        }
    }
}

/// The command's process, or its whole group.
#[derive(Clone, Copy, Debug)]
pub(super) enum Group {
    /// A separate group, led by this process.
    Own(Pid),
    /// A process in the group of the terminal, like `run` itself.
    Terminal(Pid),
}

impl Group {
    /// Returns the process id of the command.
    pub(super) fn leader(self) -> Pid {
        match self {
            Self::Own(leader) | Self::Terminal(leader) => leader,
        }
    }

    /// Sends a signal. Returns `false` if processes exist and no process may be signalled, because all run as another user.
    pub(super) fn send(self, signal: Signal) -> bool {
        let sent = match self {
            Self::Own(leader) => kill_process_group(leader, signal),
            Self::Terminal(pid) => kill_process(pid, signal),
        };
        // A missing group is no error.
        sent != Err(Errno::PERM)
    }

    /// Continues the command, and each process that the terminal has stopped together with the command.
    pub(super) fn continue_stopped(self) {
        match self {
            Self::Own(_) => {
                self.send(Signal::CONT);
            }
            Self::Terminal(_) => {
                // The group has at least this process.
                let _ = kill_current_process_group(Signal::CONT);
            }
        }
    }

    /// Returns `true` if the terminal sends `signal` to the command as well as to `run`.
    pub(super) fn hears_from_terminal(self, signal: Signal) -> bool {
        matches!(self, Self::Terminal(_)) && [Signal::INT, Signal::QUIT].contains(&signal)
    }

    /// Returns `true` while the group has processes after the end of the leader.
    pub(super) fn has_left_overs(self) -> bool {
        match self {
            Self::Own(leader) => {
                // An unreaped zombie would count as a process of the group for ever.
                while let Ok(Some(_)) = waitpgid(leader, WaitOptions::NOHANG) {}
                // A group of another user's processes answers `PERM`, and is not empty.
                test_kill_process_group(leader) != Err(Errno::SRCH)
            }
            Self::Terminal(_) => false,
        }
    }
}
