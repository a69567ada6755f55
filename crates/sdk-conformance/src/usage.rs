//! The resources of a process, as Linux counts them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// The resources of a process at a time.
#[derive(Clone, Copy, Debug)]
pub struct Usage {
    /// The time on a processor, of the threads that live.
    pub cpu: Duration,
    /// The threads.
    pub threads: usize,
    /// The open files, pipes and sockets.
    pub files: usize,
    /// The resident memory in KiB.
    pub memory_kib: u64,
}

impl Usage {
    /// Reads the resources of a process.
    #[must_use]
    pub fn from_process(id: u32) -> Self {
        let folder = PathBuf::from(format!("/proc/{id}"));
        let entries = |name| fs::read_dir(folder.join(name)).expect("a running process");
        let schedules =
            entries("task").filter_map(|task| fs::read_to_string(task.ok()?.path().join("schedstat")).ok());
        let nanoseconds =
            schedules.filter_map(|schedule| schedule.split(' ').next()?.parse::<u64>().ok()).sum();
        let status = fs::read_to_string(folder.join("status")).expect("a running process");
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.trim().strip_suffix(" kB"));
        Self {
            cpu: Duration::from_nanos(nanoseconds),
            threads: entries("task").count(),
            files: entries("fd").count(),
            memory_kib: memory.and_then(|memory| memory.parse().ok()).expect("a size"),
        }
    }
}

/// The signals 32 and 33, which the threads of the C library use among themselves. Linux counts from bit 0.
const THREAD_SIGNALS: u64 = 0b11 << 31;

/// The actions of a process on signals, as Linux shows them: a bit for each signal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalActions {
    ignored: u64,
    handled: u64,
}

impl SignalActions {
    /// Reads the actions of a process.
    #[must_use]
    pub fn from_process(id: u32) -> Self {
        let status = fs::read_to_string(format!("/proc/{id}/status")).expect("a running process");
        let signals = |name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of signals");
            u64::from_str_radix(line.trim(), 16).expect("a number") & !THREAD_SIGNALS
        };
        Self { ignored: signals("SigIgn:"), handled: signals("SigCgt:") }
    }
}
