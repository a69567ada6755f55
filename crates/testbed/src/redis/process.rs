//! One run of a server, which does not outlive this process.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A server and the process that guards it: it ends the server as it is told by a line, or kills it when its
/// input is closed. Until then the server's id is nobody else's, for only its guard can wait for it.
#[derive(Debug)]
pub(super) struct Process {
    guard: Child,
    pid: Pid,
}

/// Interrupts from a terminal go to the guard as well, and must not end it first.
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
    /// Starts a server in this environment, or with `mode` what else the program can be.
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
        let out = guard.stdout.take().expect("it is piped");
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

    /// Whether the server has ended by itself; its guard then still waits to be told.
    pub(super) fn has_ended(&mut self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        let state = stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
        state.is_none_or(|state| state == 'Z')
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("the server runs");
    }

    /// Ends the server and waits until it is gone.
    pub(super) fn end(mut self, signal: &str) {
        let input = self.guard.stdin.as_mut().expect("it is piped");
        writeln!(input, "{signal}").expect("the guard waits");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        // What the guard cannot do, nobody can.
        let _ = self.guard.wait();
    }
}
