//! The binary as a child process.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The binary under test.
pub(crate) const BIN: &str = env!("CARGO_BIN_EXE_seatkeeper");

/// How long a server may take to start or to stop, on a machine that is busy with other tests.
const START_STOP_TIMEOUT: Duration = Duration::from_secs(60);

const LISTENING: &str = "listening on ";

/// What a command printed, and how it ended.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the command to its end, with none of the environment's settings.
pub(crate) fn run(args: &[&str]) -> Output {
    run_with(&[], args)
}

/// Runs the command to its end with these variables.
pub(crate) fn run_with(variables: &[(String, String)], args: &[&str]) -> Output {
    let output = command(variables).args(args).stdin(Stdio::null()).output().expect("the command runs");
    Output {
        status: output.status,
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// The binary, with these variables and none other of the environment's settings.
pub(crate) fn command(variables: &[(String, String)]) -> Command {
    command_of(BIN.as_ref(), variables)
}

fn command_of(program: &Path, variables: &[(String, String)]) -> Command {
    let mut command = Command::new(program);
    let names = std::env::vars_os().map(|(name, _)| name);
    for name in names.filter(|name| name.to_string_lossy().starts_with("SEATKEEPER_")) {
        command.env_remove(name);
    }
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    command
}

/// A running server.
pub(crate) struct Server {
    pub(crate) url: String,
    child: Child,
    stderr: Option<JoinHandle<String>>,
}

impl Server {
    /// Starts it, and waits for the line that says where it listens.
    pub(crate) fn start(
        program: &Path,
        address: &str,
        data_dir: &Path,
        variables: &[(String, String)],
    ) -> Self {
        let mut child = command_of(program, variables)
            .args(["serve", "--listen", address, "--data-dir"])
            .arg(data_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let stdout = child.stdout.take().expect("a pipe");
        let mut stderr = child.stderr.take().expect("a pipe");
        let log = thread::spawn(move || {
            let mut log = Vec::new();
            // A log that breaks off is shown as far as it came.
            let _ = stderr.read_to_end(&mut log);
            String::from_utf8_lossy(&log).into_owned()
        });
        let mut server = Self { url: String::new(), child, stderr: Some(log) };
        match url_printed(stdout) {
            Some(url) => server.url = url,
            None => panic!("the server does not listen. It logged:\n{}", server.end(Signal::KILL).1),
        }
        server
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as a power cut would, and gives what it logged.
    pub(crate) fn kill(mut self) -> String {
        self.end(Signal::KILL).1
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(mut self) -> (ExitStatus, String) {
        self.end(Signal::TERM)
    }

    fn end(&mut self, signal: Signal) -> (ExitStatus, String) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a process id");
        // One that has ended by itself is only waited for.
        let _ = kill_process(pid, signal);
        let status = self.wait();
        let log = self.stderr.take().map(|log| log.join().expect("the log is read"));
        (status, log.unwrap_or_default())
    }

    fn wait(&mut self) -> ExitStatus {
        let deadline = Instant::now() + START_STOP_TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().expect("the server is waited for") {
                return status;
            }
            assert!(Instant::now() < deadline, "the server did not stop within {START_STOP_TIMEOUT:?}");
            thread::park_timeout(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads until the server says where it listens, and goes on reading so that it can go on printing.
fn url_printed(stdout: impl Read + Send + 'static) -> Option<String> {
    let (found, wait) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if let Some(url) = line.strip_prefix(LISTENING) {
                // Nobody waits any more if it came too late.
                let _ = found.send(url.to_owned());
            }
        }
    });
    wait.recv_timeout(START_STOP_TIMEOUT).ok()
}
