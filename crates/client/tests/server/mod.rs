//! A real server for tests: the binary that `SDK_TEST_SERVER` names.
#![allow(dead_code, reason = "each test uses a part")]

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Tells the servers of one test binary apart.
static STARTED: AtomicUsize = AtomicUsize::new(0);

/// A server with a data directory of its own.
pub(crate) struct Server {
    binary: PathBuf,
    process: Child,
    pub(crate) url: String,
    data_dir: PathBuf,
}

impl Server {
    /// Starts the server of `SDK_TEST_SERVER`. Panics without the variable.
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts the server with more variables in its environment. Panics without `SDK_TEST_SERVER`.
    pub(crate) fn start_with(variables: &[(&str, &str)]) -> Self {
        let binary = std::env::var_os("SDK_TEST_SERVER");
        let binary =
            PathBuf::from(binary.expect("SDK_TEST_SERVER is set: scripts/sdk-test sets the variable"));
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let name = format!("seatkeeper-client-{}-{number}", std::process::id());
        let data_dir = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&data_dir).unwrap();
        let mut serve = Command::new(&binary);
        serve.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(&data_dir);
        // Tests with a token that expires do not wait for the leeway.
        serve.env("SEATKEEPER_AUTH_LEEWAY_SECONDS", "0").envs(variables.iter().copied());
        let log = File::create(data_dir.join("log")).unwrap();
        let mut process = serve.stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let url =
            lines.map_while(Result::ok).find_map(|line| Some(line.strip_prefix("listening on ")?.to_owned()));
        Self { binary, process, url: url.expect("the server listens"), data_dir }
    }

    /// Returns a token of the user.
    pub(crate) fn token(&self, user: &str, ttl: &str) -> String {
        let mut command = Command::new(&self.binary);
        command.args(["token", "--user", user, "--ttl", ttl, "--data-dir"]).arg(&self.data_dir);
        output(&mut command).trim().to_owned()
    }

    /// Runs a command of the binary against this server.
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(&self.binary);
        command.args(arguments).args(["--server", &self.url, "--data-dir"]).arg(&self.data_dir);
        output(&mut command)
    }

    /// Returns a command of the binary against this server, for a shell. More arguments may follow.
    pub(crate) fn command_line(&self, arguments: &[&str]) -> String {
        let (binary, data_dir) = (self.binary.display(), self.data_dir.display());
        format!("'{binary}' {} --server {} --data-dir '{data_dir}'", arguments.join(" "), self.url)
    }

    /// Waits until a session of the machine is live, and returns the live sessions as JSON.
    pub(crate) fn wait_for_live(&self, machine: &str) -> String {
        for _ in 0..200 {
            let live = self.run(&["sessions", "list", "--live", "--json"]);
            if live.contains(machine) {
                return live;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("no session of {machine}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended by itself, and the folder may be gone.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.data_dir);
    }
}

/// Runs the command, which must succeed, and returns its output.
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}
