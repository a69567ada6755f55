//! The process group of the command.

use std::fs;
use std::path::{Path, PathBuf};

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

    /// Returns the processes of the group that may outlive the leader.
    pub(super) fn left_overs(self) -> LeftOverProcesses {
        LeftOverProcesses { group: self, living: None }
    }
}

/// The processes of the command's group after the end of the leader.
#[derive(Debug)]
pub(super) struct LeftOverProcesses {
    group: Group,
    /// A process that lived at the last look.
    living: Option<PathBuf>,
}

impl LeftOverProcesses {
    /// Returns `true` while the group has a process that is no zombie.
    pub(super) fn exist(&mut self) -> bool {
        let Group::Own(leader) = self.group else { return false };
        // Reaps the zombies among the children of `run`.
        while let Ok(Some(_)) = waitpgid(leader, WaitOptions::NOHANG) {}
        match test_kill_process_group(leader) {
            Ok(()) => !self.are_zombies(leader),
            // A group of another user's processes answers `PERM`, and is not empty.
            Err(error) => error != Errno::SRCH,
        }
    }

    /// Returns `true` if the group has zombies alone. Their parent is outside of the group, and may never reap them.
    /// Systems without `/proc` tell no zombies.
    fn are_zombies(&mut self, leader: Pid) -> bool {
        // A look at each process of a large host would cost more than a look at one.
        if self.living.as_deref().and_then(|process| is_living(process, leader)) == Some(true) {
            return false;
        }
        let processes = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path());
        let mut has_zombies = false;
        for process in processes {
            match is_living(&process, leader) {
                Some(true) => {
                    self.living = Some(process);
                    return false;
                }
                Some(false) => has_zombies = true,
                None => {}
            }
        }
        // A group without any process in `/proc`: the processes are hidden, or have just ended.
        has_zombies
    }
}

/// Returns `true` for a process of the group that lives, `false` for a zombie of the group, and `None` for every other
/// process. `process` is the folder of the process in `/proc`.
fn is_living(process: &Path, group: Pid) -> Option<bool> {
    let stat = fs::read(process.join("stat")).ok()?;
    // The name of the program, in parentheses, may have spaces and parentheses.
    let stat = String::from_utf8_lossy(&stat);
    let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let (state, process_group, threads) = (fields.first()?, fields.get(2)?, fields.get(17)?);
    let is_member = process_group.parse::<i32>() == Ok(group.as_raw_nonzero().get());
    // The first thread of a process may end before the others, and is a zombie until they end.
    let has_ended = ["Z", "X"].contains(state) && ["0", "1"].contains(threads);
    is_member.then_some(!has_ended)
}
