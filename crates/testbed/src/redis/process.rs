//! A single run of a server, never longer than the test process.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A server and its guard process. A line on the guard's input names the signal that ends the server; the end
/// of input kills the server. Only the guard can reap the server, so the server's id is not reused before.
#[derive(Debug)]
pub(super) struct Process {
    guard: Child,
    pid: Pid,
}

/// The guard's script. A terminal sends interrupts to the guard as well, so the guard ignores interrupts.
const GUARD: &str = r#"
    trap '' INT TERM HUP
    command -v redis-server >&2 || { echo missing; exit; }
    redis-server "$1" $3 >"$2" 2>&1 </dev/null &
    echo $!
    exec >&-
    read -r signal
    kill -s CONT $!
    kill -s "${signal:-KILL}" $!
    wait $!
"#;

impl Process {
    /// Starts a server in `environment`. `mode` selects another role of the program, such as `--sentinel`.
    pub(super) fn start(
        conf: &Path,
        log: &Path,
        mode: Option<&str>,
        environment: Vec<(&'static str, PathBuf)>,
    ) -> Self {
        File::create(log).expect("the directory is writable");
        let mut command = Command::new("sh");
        command.args(["-c", GUARD, "guard"]).arg(conf).arg(log).args(mode);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.envs(environment);
        let mut guard = command.spawn().expect("every system has a shell");
        let mut told = String::new();
        let out = guard.stdout.take().expect("the guard's stream is piped");
        BufReader::new(out).read_line(&mut told).expect("the guard tells of the server");
        let pid = told.trim().parse().ok().and_then(Pid::from_raw);
        let Some(pid) = pid else {
            panic!("Redis is missing: install redis-server (Debian: apt-get install redis-server)")
        };
        Self { guard, pid }
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Returns `true` if the server has ended by itself. The guard then still waits for a signal name.
    pub(super) fn has_ended(&mut self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        state.is_none_or(|state| state == 'Z')
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("the server runs");
    }

    /// Ends the server with `signal`, and waits until the process is gone.
    pub(super) fn end(mut self, signal: &str) {
        let input = self.guard.stdin.as_mut().expect("the guard's stream is piped");
        writeln!(input, "{signal}").expect("the guard waits");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // An error leaves no further way to end the server.
        let _ = self.guard.wait();
    }
}
