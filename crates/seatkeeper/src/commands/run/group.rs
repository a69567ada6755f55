//! The processes of the command.

use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

/// The command's process, or its whole group.
#[derive(Clone, Copy, Debug)]
pub(super) enum Group {
    /// A group of its own, led by this process.
    Own(Pid),
    /// A process in the group of the terminal, where `run` is as well.
    Terminal(Pid),
}

impl Group {
    /// Sends a signal. A group that is gone has nothing to receive it.
    pub(super) fn send(self, signal: Signal) {
        let _ = match self {
            Self::Own(leader) => kill_process_group(leader, signal),
            Self::Terminal(pid) => kill_process(pid, signal),
        };
    }

    /// Forwards a signal that came to `run`. The terminal has sent INT and QUIT to the whole group already.
    pub(super) fn forward(self, signal: Signal) {
        match self {
            Self::Terminal(_) if [Signal::INT, Signal::QUIT].contains(&signal) => {}
            Self::Own(_) | Self::Terminal(_) => self.send(signal),
        }
    }

    /// Returns true while processes are left besides the leader, which is over.
    pub(super) fn has_left_overs(self) -> bool {
        match self {
            Self::Own(leader) => test_kill_process_group(leader).is_ok(),
            Self::Terminal(_) => false,
        }
    }
}
