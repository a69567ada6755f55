//! The demo's private server: this program as a child process. The server never outlives the demo.

use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Timeout for the server's start and for its stop.
const START_STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest wait for the end of a killed server, and the pause between two looks.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
const KILL_POLL: Duration = Duration::from_millis(5);

const LISTENING: &str = "listening on ";

/// Turns the rate limits off, because the demo sends more requests than its story would.
const UNLIMITED: [&str; 4] = [
    "SEATKEEPER_LIMITS_LICENSES_ACQUIRES_PER_MINUTE",
    "SEATKEEPER_LIMITS_LICENSES_HEARTBEATS_PER_MINUTE",
    "SEATKEEPER_LIMITS_DEVICES_ACQUIRES_PER_MINUTE",
    "SEATKEEPER_LIMITS_CAPACITIES_ACQUIRES_PER_MINUTE",
];

/// A running server. Dropping the handle kills the server and waits for the server's end, so that the server's directory
/// can be removed next.
#[derive(Debug)]
pub(super) struct ChildServer {
    child: Child,
    url: String,
    // Kept open, since the server would fail to print without a reader.
    stdout: Lines<BufReader<ChildStdout>>,
}

/// The reason why no server runs.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildError {
    /// The process cannot be started, read, signalled or waited for.
    #[error("the demonstration's server cannot be started, stopped or read")]
    Process(#[from] io::Error),
    /// The server ended before it listened.
    #[error("the demonstration's server ended before it took requests")]
    EndedEarly,
    /// The server took too long.
    #[error("the demonstration's server took longer than {} s", START_STOP_TIMEOUT.as_secs())]
    TooLong(#[from] tokio::time::error::Elapsed),
}

impl ChildServer {
    /// Starts a server on a free port, and waits until it takes requests.
    pub(super) async fn start(data_dir: &Path) -> Result<Self, ChildError> {
        let mut child = command(data_dir)?.spawn()?;
        let stdout = BufReader::new(child.stdout.take().ok_or(ChildError::EndedEarly)?).lines();
        // The handle is complete before the wait: a start that breaks off leaves no server.
        let mut server = Self { child, url: String::new(), stdout };
        server.url = timeout(START_STOP_TIMEOUT, read_url(&mut server.stdout)).await??;
        Ok(server)
    }

    /// Returns the URL of the server.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Kills the server with `kill -9`, like a power cut.
    pub(super) async fn kill(mut self) -> Result<(), ChildError> {
        self.child.kill().await?;
        Ok(())
    }

    /// Asks the server to stop, and waits for its end.
    pub(super) async fn stop(mut self) -> Result<ExitStatus, ChildError> {
        if let Some(pid) = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())) {
            kill_process(pid, Signal::TERM).map_err(io::Error::from)?;
        }
        Ok(timeout(START_STOP_TIMEOUT, self.child.wait()).await??)
    }
}

impl Drop for ChildServer {
    fn drop(&mut self) {
        // A server that cannot be killed does not end by the wait.
        if self.child.start_kill().is_err() {
            return;
        }
        let give_up = Instant::now() + KILL_TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < give_up {
            std::thread::sleep(KILL_POLL);
        }
    }
}

/// Returns the server's command, without settings from the environment for a real server.
fn command(data_dir: &Path) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data_dir);
    let variables = std::env::vars_os().map(|(name, _)| name);
    for name in variables.filter(|name| name.to_string_lossy().starts_with("SEATKEEPER_")) {
        command.env_remove(name);
    }
    command.env("SEATKEEPER_LOG_LEVEL", "error").envs(UNLIMITED.map(|limit| (limit, "0")));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    Ok(command)
}

async fn read_url(lines: &mut Lines<BufReader<ChildStdout>>) -> Result<String, ChildError> {
    while let Some(line) = lines.next_line().await? {
        if let Some(url) = line.strip_prefix(LISTENING) {
            return Ok(url.to_owned());
        }
    }
    Err(ChildError::EndedEarly)
}
