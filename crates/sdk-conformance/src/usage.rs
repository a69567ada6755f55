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
