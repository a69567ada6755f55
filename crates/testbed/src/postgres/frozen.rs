//! Freezes every process of a cluster.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

use super::Postgres;

impl Postgres {
    /// Freezes every process of the cluster, with the connections open. The postmaster is frozen first, so
    /// that no process starts meanwhile.
    pub fn pause(&self) {
        let postmaster = self.pid();
        signal(postmaster, Signal::STOP);
        children_of(postmaster).into_iter().for_each(|child| signal(child, Signal::STOP));
    }

    /// Lets the processes run on.
    pub fn resume(&self) {
        let postmaster = self.pid();
        children_of(postmaster).into_iter().for_each(|child| signal(child, Signal::CONT));
        signal(postmaster, Signal::CONT);
    }
}

fn signal(pid: u32, signal: Signal) {
    let process = Pid::from_raw(pid.cast_signed()).expect("a process id");
    // Errors are ignored: the process may have ended.
    let _ = kill_process(process, signal);
}

/// Returns the running children of a process.
pub(super) fn children_of(parent: u32) -> Vec<u32> {
    let processes = fs::read_dir("/proc").expect("every Linux has /proc");
    let ids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    ids.filter(|&id| parent_of(id) == Some(parent)).collect()
}

fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The program name in parentheses may contain spaces and parentheses.
    stat.rsplit(") ").next()?.split(' ').nth(1)?.parse().ok()
}
