//! The memory and the CPU time of a process, from `/proc`.

use std::time::Duration;

use crate::error::Error;

/// The unit of times in `/proc`, equal on every Linux that Rust supports.
const TICK: Duration = Duration::from_millis(10);

/// Position of the user time in `/proc/PID/stat`, counted from behind the process name.
const USER_TIME_FIELD: usize = 11;

/// Returns the resident memory of a process, in bytes.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64, Error> {
    let status = read(pid, "status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or(Error::Unclear { said: status })
}

/// Returns the CPU time of a process over all cores.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration, Error> {
    let stat = read(pid, "stat")?;
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace().skip(USER_TIME_FIELD));
    let ticks: Option<Vec<u32>> = fields.and_then(|fields| fields.take(2).map(|t| t.parse().ok()).collect());
    match ticks.as_deref() {
        Some([user, system]) => Ok(TICK * (user + system)),
        _ => Err(Error::Unclear { said: stat }),
    }
}

fn read(pid: u32, what: &str) -> Result<String, Error> {
    std::fs::read_to_string(format!("/proc/{pid}/{what}")).map_err(Error::system("read /proc"))
}
