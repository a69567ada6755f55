//! A real server for a test: the binary itself, on a free port, with a data directory of its own.
//!
//! Every test file includes this module and uses some of it.
#![allow(dead_code, unused_imports, reason = "no test file uses all of the house")]
#![allow(clippy::expect_used, clippy::panic, reason = "a house that cannot be built fails the test")]

mod client;
mod event_stream;
mod eventually;
mod process;
pub(crate) mod sink;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use client::{Answer, Client};
pub(crate) use event_stream::{EventStream, Heard};
pub(crate) use eventually::eventually;
use process::Server;
pub(crate) use process::{BIN, Output, command, run, run_with};

/// The tenant of whoever does not care.
pub(crate) const TENANT: &str = "default";

/// A server under test.
///
/// When a test that went well is over, the house is checked as it is dropped: the server stops when it is
/// asked to, it has logged no error, and the audit log is proved. Whatever happened, no process stays.
pub(crate) struct House {
    dir: TempDir,
    variables: Vec<(String, String)>,
    server: Option<Server>,
}

impl House {
    /// A server with the usual settings.
    pub(crate) fn open() -> Self {
        Self::open_with(&[])
    }

    /// A server with settings of its own: `("LICENSES_TTL_SECONDS", "2")`.
    pub(crate) fn open_with(settings: &[(&str, &str)]) -> Self {
        let variables = settings.iter();
        let variables = variables.map(|(name, value)| (format!("SEATKEEPER_{name}"), (*value).to_owned()));
        let mut house = Self {
            dir: tempfile::tempdir().expect("a directory"),
            variables: variables.collect(),
            server: None,
        };
        house.start();
        house
    }

    /// Starts the server again, after [`kill`](Self::kill) or [`stop`](Self::stop).
    pub(crate) fn start(&mut self) {
        assert!(self.server.is_none(), "the server runs already");
        self.server = Some(Server::start(self.data_dir(), &self.variables));
    }

    /// Ends it as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.server.take().expect("a running server").kill();
    }

    /// Asks it to stop with SIGTERM and waits until it has. Gives how it exited and what it logged.
    pub(crate) fn stop(&mut self) -> (ExitStatus, String) {
        self.server.take().expect("a running server").stop()
    }

    /// Where it listens: `http://127.0.0.1:PORT`.
    pub(crate) fn url(&self) -> &str {
        &self.server.as_ref().expect("a running server").url
    }

    /// The id of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.server.as_ref().expect("a running server").pid()
    }

    /// Its data directory.
    pub(crate) fn data_dir(&self) -> &Path {
        self.dir.path()
    }

    /// A file beside nothing of the server's.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A token for a user of the usual tenant.
    pub(crate) fn token(&self, user: &str) -> String {
        self.token_of(TENANT, user, "")
    }

    /// A token for any tenant, user and scopes.
    pub(crate) fn token_of(&self, tenant: &str, user: &str, scope: &str) -> String {
        let data_dir = self.data_dir().to_str().expect("a path in Unicode");
        let args = ["token", "--tenant", tenant, "--user", user, "--scope", scope, "--data-dir", data_dir];
        let output = run_with(&self.variables, &args);
        assert!(output.status.success(), "{}", output.stderr);
        output.stdout.trim().to_owned()
    }

    /// A client that speaks for a user of the usual tenant.
    pub(crate) fn client(&self, user: &str) -> Client {
        Client::new(self.url(), self.token(user))
    }

    /// A client that speaks for an admin of the usual tenant.
    pub(crate) fn admin(&self) -> Client {
        Client::new(self.url(), self.token_of(TENANT, "ops", "admin"))
    }

    /// Makes a license of so many seats and gives it as the API shows it.
    pub(crate) async fn license(&self, seats: u32) -> Value {
        self.license_with(json!({ "max_seats": seats })).await
    }

    /// Makes a license and gives it as the API shows it.
    pub(crate) async fn license_with(&self, ask: Value) -> Value {
        let answer = self.admin().post("/api/v1/admin/licenses", ask).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.body
    }

    /// Runs the command against this server: `--server` and `--data-dir` are added.
    pub(crate) fn command(&self, args: &[&str]) -> Output {
        let data_dir = self.data_dir().to_str().expect("a path in Unicode");
        let mut all = args.to_vec();
        all.extend(["--server", self.url(), "--data-dir", data_dir]);
        run(&all)
    }

    /// Proves the audit log, and fails the test with the finding if it cannot be proved.
    pub(crate) fn prove(&self) -> String {
        let data_dir = self.data_dir().to_str().expect("a path in Unicode");
        let output = run_with(&self.variables, &["audit", "verify", "--data-dir", data_dir]);
        assert!(output.status.success(), "{}{}", output.stdout, output.stderr);
        output.stdout
    }
}

impl Drop for House {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        if let Some(server) = self.server.take() {
            let (status, log) = server.stop();
            assert_eq!(status.code(), Some(0), "{log}");
            assert!(!log.contains("\"level\":\"ERROR\""), "{log}");
            self.prove();
        }
    }
}
