//! Processes of their own that hold seats: the test binary again, with its test `child`.
#![allow(dead_code, reason = "each test uses a part")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use seatkeeper_client::{Client, Error, Seat};

/// The user of a process without rights.
pub(crate) const NOBODY: u32 = 65_534;

/// A process with seats. The drop kills the process.
pub(crate) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    /// Open until the end: a process that cannot write fails.
    stdout: BufReader<ChildStdout>,
    /// The instance id of each seat.
    pub(crate) instances: Vec<String>,
    /// The warnings of the seats.
    pub(crate) warnings: Vec<String>,
    /// The errors of refused acquires.
    pub(crate) refused: Vec<String>,
}

impl Process {
    /// Prepares a process that takes `seats` seats of `license` for the machine `m`.
    pub(crate) fn command(url: &str, token: &str, license: &str, seats: u32) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child", "--nocapture", "--test-threads=1"]).env("CHILD_URL", url);
        command.env("CHILD_TOKEN", token).env("CHILD_LICENSE", license).env("CHILD_SEATS", seats.to_string());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    /// Starts the process, and waits until it has its seats.
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let (instances, warnings, refused) = (Vec::new(), Vec::new(), Vec::new());
        let mut process = Self { child, stdin, stdout, instances, warnings, refused };
        loop {
            let mut line = String::new();
            let length = process.stdout.read_line(&mut line).unwrap();
            assert!(length > 0, "the child has ended: {:?}", process.child.wait());
            match line.trim_end().split_once(' ') {
                Some(("instance", id)) => process.instances.push(id.to_owned()),
                Some(("warning", text)) => process.warnings.push(text.to_owned()),
                Some(("refused", code)) => process.refused.push(code.to_owned()),
                Some(_) => {}
                None if line.trim_end() == "ready" => return process,
                None => {}
            }
        }
    }

    /// Kills the process, as a crash does: nothing is released.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Lets the process release its seats and end.
    pub(crate) fn end(mut self) {
        self.stdin.take().unwrap().write_all(b"end").unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Holds seats as the environment says; does nothing in the test binary of the parent.
pub(crate) async fn run_as_child() {
    let variable = |name| std::env::var(name).ok();
    let Some(url) = variable("CHILD_URL") else { return };
    let mut builder = Client::builder(url).token(variable("CHILD_TOKEN").unwrap());
    if let Some(path) = variable("CHILD_STATE_DIR") {
        builder = builder.state_dir(path);
    }
    let client = builder.build().unwrap();
    let license = variable("CHILD_LICENSE").unwrap();
    let (mut seats, mut said) = (Vec::new(), "\n".to_owned());
    for _ in 0..variable("CHILD_SEATS").unwrap().parse().unwrap() {
        let seat: Result<Seat, Error> = client.license(&license).machine("m").per_process().acquire().await;
        match seat {
            Ok(seat) => {
                said += &format!("instance {}\n", seat.instance_id().unwrap());
                said += &seat.state_dir_error().map(|error| format!("warning {error}\n")).unwrap_or_default();
                seats.push(seat);
            }
            Err(error) => said += &format!("refused {}\n", error.code()),
        }
    }
    std::io::stdout().write_all((said + "ready\n").as_bytes()).unwrap();
    let read = tokio::task::spawn_blocking(|| std::io::stdin().read(&mut [0; 3]));
    read.await.unwrap().unwrap();
    for seat in seats {
        seat.release().await.unwrap();
    }
}
