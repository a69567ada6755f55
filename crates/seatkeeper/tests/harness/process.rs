//! The binary as a child process.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The path of the binary under test.
pub(crate) const BIN: &str = env!("CARGO_BIN_EXE_seatkeeper");

/// Time limit for the start or the stop of a server, on a machine that is busy with other tests.
const START_STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// The most starts of a server whose ledger opens too late.
const STARTS_MAX: usize = 3;

/// The error of a command or a server whose ledger is too slow on a machine that is busy with other tests.
pub(crate) const LEDGER_UNAVAILABLE: &str = "the ledger is unavailable";

const LISTENING: &str = "listening on ";

/// The output and the exit status of a command.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the command to its end, without any `SEATKEEPER_` variable of the environment.
pub(crate) fn run(args: &[&str]) -> Output {
    run_with(&[], args)
}

/// Runs the command to its end. Of all `SEATKEEPER_` variables it sees only `variables`.
pub(crate) fn run_with(variables: &[(String, String)], args: &[&str]) -> Output {
    let output = command(variables).args(args).stdin(Stdio::null()).output().expect("the command runs");
    Output {
        status: output.status,
        stdout: String::from_utf8(output.stdout).expect("text"),
        stderr: String::from_utf8(output.stderr).expect("text"),
    }
}

/// Builds a command for the binary. Of all `SEATKEEPER_` variables it sees only `variables`.
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

/// A running server process.
pub(crate) struct Server {
    pub(crate) url: String,
    child: Child,
    log: Log,
}

/// The log of a running server.
struct Log {
    text: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Log {
    fn read(mut stderr: impl Read + Send + 'static) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&text);
        let reader = thread::spawn(move || {
            let mut chunk = [0; 8192];
            // A log that breaks off is kept up to the break.
            while let Ok(read @ 1..) = stderr.read(&mut chunk) {
                written.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&chunk[..read]);
            }
        });
        Self { text, reader: Some(reader) }
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.text.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// Returns the whole log of a server that has ended.
    fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the log is read");
        }
        self.so_far()
    }
}

impl Server {
    /// Starts a server, and waits for the line with its address. A server whose ledger opens too late is started again.
    pub(crate) fn start(
        program: &Path,
        address: &str,
        data_dir: &Path,
        variables: &[(String, String)],
    ) -> Self {
        for _ in 1..STARTS_MAX {
            match Self::try_to_start(program, address, data_dir, variables) {
                Ok(server) => return server,
                Err(log) if log.contains(LEDGER_UNAVAILABLE) => {}
                Err(log) => panic!("the server does not listen. It logged:\n{log}"),
            }
        }
        Self::try_to_start(program, address, data_dir, variables)
            .unwrap_or_else(|log| panic!("the server does not listen. It logged:\n{log}"))
    }

    /// Starts a server. Returns the log of a server that does not listen.
    fn try_to_start(
        program: &Path,
        address: &str,
        data_dir: &Path,
        variables: &[(String, String)],
    ) -> Result<Self, String> {
        let mut child = command_of(program, variables)
            .args(["serve", "--listen", address, "--data-dir"])
            .arg(data_dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let stdout = child.stdout.take().expect("a pipe");
        let log = Log::read(child.stderr.take().expect("a pipe"));
        let mut server = Self { url: String::new(), child, log };
        match url_printed(stdout) {
            Some(url) => server.url = url,
            None => return Err(server.end(Signal::KILL).1),
        }
        Ok(server)
    }

    /// Returns the log up to now.
    pub(crate) fn log_so_far(&self) -> String {
        self.log.so_far()
    }

    /// Returns the process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server with SIGKILL, as a power cut would. Returns its log.
    pub(crate) fn kill(mut self) -> String {
        self.end(Signal::KILL).1
    }

    /// Stops the server with SIGTERM and waits for its end. Returns the exit status and the log.
    pub(crate) fn stop(mut self) -> (ExitStatus, String) {
        self.end(Signal::TERM)
    }

    fn end(&mut self, signal: Signal) -> (ExitStatus, String) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("a process id");
        // A server that has already exited needs no signal, only the wait.
        let _ = kill_process(pid, signal);
        let status = self.wait();
        (status, self.log.whole())
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
        // The server may have exited already: an error here is harmless.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the URL from the line `listening on`, or `None` if the line does not come in time. A thread reads
/// on, so that the server never blocks on a full pipe.
fn url_printed(stdout: impl Read + Send + 'static) -> Option<String> {
    let (found, wait) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            if let Some(url) = line.strip_prefix(LISTENING) {
                // After a timeout, the receiver is gone: the URL is dropped.
                let _ = found.send(url.to_owned());
            }
        }
    });
    wait.recv_timeout(START_STOP_TIMEOUT).ok()
}
