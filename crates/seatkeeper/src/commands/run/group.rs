//! The process group of the command.

use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, test_kill_process_group, waitpgid,
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

/// The command's process, or its whole group.
#[derive(Clone, Copy, Debug)]
pub(super) enum Group {
    /// A separate group, led by this process.
    Own(Pid),
    /// A process in the group of the terminal, like `run` itself.
    Terminal(Pid),
}

impl Group {
    /// Sends a signal. A missing group is no error.
    pub(super) fn send(self, signal: Signal) {
        let _ = match self {
            Self::Own(leader) => kill_process_group(leader, signal),
            Self::Terminal(pid) => kill_process(pid, signal),
        };
    }

    /// Forwards a signal sent to `run`. The terminal has already sent INT and QUIT to the whole group.
    pub(super) fn forward(self, signal: Signal) {
        match self {
            Self::Terminal(_) if [Signal::INT, Signal::QUIT].contains(&signal) => {}
            Self::Own(_) | Self::Terminal(_) => self.send(signal),
        }
    }

    /// Returns `true` while the group has processes after the end of the leader.
    pub(super) fn has_left_overs(self) -> bool {
        match self {
            Self::Own(leader) => {
                // An unreaped zombie would count as a process of the group for ever.
                while let Ok(Some(_)) = waitpgid(leader, WaitOptions::NOHANG) {}
                test_kill_process_group(leader).is_ok()
            }
            Self::Terminal(_) => false,
        }
    }
}
