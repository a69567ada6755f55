//! What the system knows of a process.

use std::time::Duration;

use crate::error::Error;

/// The unit of the times in `/proc`, the same on every Linux that Rust runs on.
const TICK: Duration = Duration::from_millis(10);

/// Where the time in user mode stands after the process's name.
const USER_TIME_FIELD: usize = 11;

/// What a process has in memory, in bytes.
pub(crate) fn resident_bytes(pid: u32) -> Result<u64, Error> {
    let status = read(pid, "status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|rest| rest.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kib.map(|kib| kib * 1024).ok_or(Error::Unclear { said: status })
}

/// How much time a process has had of any core.
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
