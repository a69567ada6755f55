//! A real server for a test: the binary on a free port with its own data directory, or several nodes of it
//! over a Redis and a database.
//!
//! Every test binary includes this module, and selects the topology of the server with its constant
//! `TOPOLOGY`.
#![allow(dead_code, unused_imports, reason = "every test file uses a part of the harness")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "an error in the harness fails the test"
)]

mod client;
mod event_stream;
mod eventually;
mod process;
mod scrape;
pub(crate) mod sink;
mod topology;

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::thread;

use seatkeeper_ledger::Location;
use seatkeeper_server::Settings;

use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) use client::{Answer, Client, Doors};
pub(crate) use event_stream::{EventStream, Heard};
pub(crate) use eventually::eventually;
pub(crate) use process::{BIN, Output, Server, command, run, run_with};
pub(crate) use scrape::Scrape;
pub(crate) use topology::{LICENSE_TOKEN_KEY_FILE, Topology, write_ed25519_key};

use crate::TOPOLOGY;
use process::LEDGER_UNAVAILABLE;
use topology::Backing;

/// The tenant of tests that need only one.
pub(crate) const TENANT: &str = "default";

/// Lifetime of tokens: longer than any test, even for a node whose clock is an hour ahead.
const TOKEN_TTL: &str = "24h";

/// The most repetitions of a command whose ledger is too slow on a busy machine.
const TRIES_MAX: usize = 3;

/// The rate limits. They are off, because most tests send requests faster than any client.
const UNLIMITED: [&str; 10] = [
    "LIMITS_LICENSES_ACQUIRES_PER_MINUTE",
    "LIMITS_LICENSES_HEARTBEATS_PER_MINUTE",
    "LIMITS_DEVICES_ACQUIRES_PER_MINUTE",
    "LIMITS_DEVICES_HEARTBEATS_PER_MINUTE",
    "LIMITS_CAPACITIES_ACQUIRES_PER_MINUTE",
    "LIMITS_SERVICE_ACQUIRES_PER_MINUTE",
    "LIMITS_SERVICE_HEARTBEATS_PER_MINUTE",
    "LIMITS_LICENSE_TOKENS_PER_ADDRESS_PER_MINUTE",
    "LIMITS_LICENSE_TOKENS_PER_KEY_PER_MINUTE",
    "LIMITS_RELEASES_PER_ADDRESS_PER_MINUTE",
];

/// The log texts of a node whose database answers slowly: after 400 ms, and after the epoch lease of 2 s.
const LEDGER_SLOW: [&str; 2] = ["the ledger does not answer", "this node has lost the ledger"];

/// A server under test: one process, or several nodes that clients see as one server.
///
/// Dropping the harness of a passed test checks the server: SIGTERM stops it, no error is in its log, and the
/// audit log verifies. After a failed test, the processes are killed.
pub(crate) struct Harness {
    program: PathBuf,
    servers: Vec<Server>,
    doors: Doors,
    variables: Vec<(String, String)>,
    // Declared after `servers`, so that Redis and the database are dropped last.
    backing: Option<Backing>,
    dir: TempDir,
}

impl Harness {
    /// Starts a server with the default settings, but without rate limits.
    pub(crate) fn open() -> Self {
        Self::open_with(&[])
    }

    /// Starts a server with extra settings, as `("LICENSES_TTL_SECONDS", "2")`.
    pub(crate) fn open_with(settings: &[(&str, &str)]) -> Self {
        Self::open_in(&[], settings)
    }

    /// Starts a server with extra settings and extra environment variables.
    pub(crate) fn open_in(environment: &[(&str, PathBuf)], settings: &[(&str, &str)]) -> Self {
        Self::open_as(BIN.as_ref(), environment, settings)
    }

    /// Starts a server from `program`, which may be another version of the binary.
    pub(crate) fn open_as(
        program: &Path,
        environment: &[(&str, PathBuf)],
        settings: &[(&str, &str)],
    ) -> Self {
        let environment = environment
            .iter()
            .map(|(name, value)| ((*name).to_owned(), value.to_str().expect("a path in Unicode").to_owned()));
        let backing = TOPOLOGY.backing();
        let unlimited = UNLIMITED.iter().map(|name| (variable(name), "0".to_owned()));
        // Settings with an algorithm replace all settings of tokens. An empty name stands for no file of license tokens.
        let believes = settings.iter().any(|(name, _)| *name == "AUTH_ALGORITHM");
        let says = |setting: &str| settings.iter().any(|(name, _)| *name == setting);
        let is_kept = |setting: &str| match setting {
            LICENSE_TOKEN_KEY_FILE => !says(setting),
            _ => !(believes && setting.starts_with("AUTH_")),
        };
        let shared = backing.iter().flat_map(Backing::settings);
        let shared = shared.filter(|(name, _)| is_kept(name));
        let shared = shared.map(|(name, value)| (variable(name), value));
        let own = settings.iter().filter(|setting| **setting != (LICENSE_TOKEN_KEY_FILE, ""));
        let own = own.map(|(name, value)| (variable(name), (*value).to_owned()));
        let mut harness = Self {
            program: program.to_owned(),
            servers: Vec::new(),
            doors: Doors::default(),
            variables: unlimited.chain(shared).chain(own).chain(environment).collect(),
            backing,
            dir: tempfile::tempdir().expect("a directory"),
        };
        harness.start();
        harness
    }

    /// Starts the server again, after [`kill`](Self::kill) or [`stop`](Self::stop).
    pub(crate) fn start(&mut self) {
        assert!(self.servers.is_empty(), "the server runs already");
        let dirs = (0..TOPOLOGY.nodes()).map(|node| self.dir_of(node));
        let (program, variables) = (&self.program, &self.variables);
        self.servers = thread::scope(|scope| {
            let starting: Vec<_> = dirs
                .map(|dir| scope.spawn(move || Server::start(program, "127.0.0.1:0", &dir, variables)))
                .collect();
            starting.into_iter().map(|server| server.join().expect("a server that starts")).collect()
        });
        self.doors = Doors::new(self.servers.iter().map(|server| server.url.clone()));
    }

    /// Starts the server again with another value of a setting.
    pub(crate) fn start_with(&mut self, setting: &str, value: &str) {
        self.variables.push((variable(setting), value.to_owned()));
        self.start();
    }

    /// Stops a server of one process, and starts `program` at the same address. Returns the log of the
    /// stopped process.
    pub(crate) fn replace_by(&mut self, program: &Path) -> String {
        let (address, dir) = (self.url().trim_start_matches("http://").to_owned(), self.dir_of(0));
        let (status, log) = self.stop();
        assert_eq!(status.code(), Some(0), "{log}");
        self.program = program.to_owned();
        self.servers.push(Server::start(program, &address, &dir, &self.variables));
        log
    }

    /// Kills every node with SIGKILL, as a power cut would. Redis and the database go on.
    pub(crate) fn kill(&mut self) {
        assert!(!self.servers.is_empty(), "a running server");
        self.servers.drain(..).for_each(|server| drop(server.kill()));
    }

    /// Stops every node with SIGTERM and waits for its end. Returns the exit status, preferably of a failed
    /// node, and the logs.
    pub(crate) fn stop(&mut self) -> (ExitStatus, String) {
        let ends: Vec<_> = thread::scope(|scope| {
            let stopping: Vec<_> =
                self.servers.drain(..).map(|server| scope.spawn(|| server.stop())).collect();
            stopping.into_iter().map(|end| end.join().expect("a server that stops")).collect()
        });
        let log = ends.iter().map(|(_, log)| log.as_str()).collect();
        let status = ends.into_iter().map(|(status, _)| status).max_by_key(|status| !status.success());
        (status.expect("a running server"), log)
    }

    /// Returns the base URL of the next node, `http://127.0.0.1:PORT`, round robin.
    pub(crate) fn url(&self) -> &str {
        self.doors.next()
    }

    /// Returns the base URLs of the nodes.
    pub(crate) fn doors(&self) -> &Doors {
        &self.doors
    }

    /// Returns the logs of the nodes up to now.
    pub(crate) fn log_so_far(&self) -> String {
        self.servers.iter().map(Server::log_so_far).collect()
    }

    /// Returns the process id of the first node.
    pub(crate) fn pid(&self) -> u32 {
        self.servers.first().expect("a running server").pid()
    }

    /// Returns the data directory of the first node.
    pub(crate) fn data_dir(&self) -> &Path {
        self.dir.path()
    }

    fn dir_of(&self, node: usize) -> PathBuf {
        if node == 0 { self.data_dir().to_owned() } else { self.path(&format!("node-{node}")) }
    }

    /// Returns the path of a file in the data directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the location of the ledger.
    pub(crate) fn ledger(&self) -> Location {
        self.backing.as_ref().map_or_else(|| Location::from(self.data_dir()), Backing::ledger)
    }

    /// Returns the settings that tokens for this server are signed with.
    pub(crate) fn token_settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.ledger.data_dir = self.data_dir().to_owned();
        if let Some(backing) = &self.backing {
            backing.believe(&mut settings.auth);
        }
        settings
    }

    /// Makes a token for a user of [`TENANT`].
    pub(crate) fn token(&self, user: &str) -> String {
        self.token_of(TENANT, user, "")
    }

    /// Makes a token for a tenant, a user and scopes.
    pub(crate) fn token_of(&self, tenant: &str, user: &str, scope: &str) -> String {
        self.new_token((tenant, user, scope), TOKEN_TTL)
    }

    /// Makes a token of [`TENANT`] with this lifetime, such as `1s`.
    pub(crate) fn token_lasting(&self, lifetime: &str) -> String {
        self.new_token((TENANT, "ann", ""), lifetime)
    }

    fn new_token(&self, (tenant, user, scope): (&str, &str, &str), lifetime: &str) -> String {
        let data_dir = self.data_dir().to_str().expect("a path in Unicode");
        let args = [
            "token",
            "--tenant",
            tenant,
            "--user",
            user,
            "--scope",
            scope,
            "--ttl",
            lifetime,
            "--data-dir",
            data_dir,
        ];
        let output = run_with(&self.variables, &args);
        assert!(output.status.success(), "{}", output.stderr);
        output.stdout.trim().to_owned()
    }

    /// Returns a client for a user of [`TENANT`].
    pub(crate) fn client(&self, user: &str) -> Client {
        self.client_with(self.token(user))
    }

    /// Returns a client for an admin of [`TENANT`].
    pub(crate) fn admin(&self) -> Client {
        self.client_with(self.token_of(TENANT, "ops", "admin"))
    }

    /// Returns a client with a given token. Consecutive requests go to consecutive nodes.
    pub(crate) fn client_with(&self, token: String) -> Client {
        Client::at(self.doors.clone(), token)
    }

    /// Creates a license with `seats` seats. Returns the API's representation.
    pub(crate) async fn license(&self, seats: u32) -> Value {
        self.license_with(json!({ "max_seats": seats })).await
    }

    /// Creates a license from a request body. Returns the API's representation.
    pub(crate) async fn license_with(&self, ask: Value) -> Value {
        let answer = self.admin().post("/api/v1/admin/licenses", ask).await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        answer.body
    }

    /// Runs the `seatkeeper` command with `--server` and `--data-dir` of this server.
    pub(crate) fn command(&self, args: &[&str]) -> Output {
        let data_dir = self.data_dir().to_str().expect("a path in Unicode");
        let mut all = args.to_vec();
        all.extend(["--server", self.url(), "--data-dir", data_dir]);
        run_with(&self.variables, &all)
    }

    /// Runs `audit verify`. Fails the test with the finding if the audit log does not verify.
    pub(crate) fn prove(&self) -> String {
        let data_dir = self.data_dir().to_str().expect("a path in Unicode");
        let verify = || run_with(&self.variables, &["audit", "verify", "--data-dir", data_dir]);
        let mut output = verify();
        for _ in 0..TRIES_MAX {
            if output.status.success() || !output.stderr.contains(LEDGER_UNAVAILABLE) {
                break;
            }
            output = verify();
        }
        assert!(output.status.success(), "{}{}", output.stdout, output.stderr);
        output.stdout
    }
}

fn variable(setting: &str) -> String {
    format!("SEATKEEPER_{setting}")
}

impl Drop for Harness {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for server in self.servers.drain(..) {
                show_what_was_wrong(&server.kill());
            }
            return;
        }
        if !self.servers.is_empty() {
            let (status, log) = self.stop();
            assert_eq!(status.code(), Some(0), "{log}");
            let errors = log.lines().filter(|line| line.contains("\"level\":\"ERROR\""));
            // PostgreSQL may answer slowly on a machine that is busy with other tests.
            let is_slow = |line: &&str| LEDGER_SLOW.iter().any(|text| line.contains(text));
            let errors = errors.filter(|line| !(self.backing.is_some() && is_slow(line)));
            assert_eq!(errors.count(), 0, "{log}");
            self.prove();
        }
    }
}

/// Prints the latest warnings and errors of a log, beside the reason of the test's failure.
fn show_what_was_wrong(log: &str) {
    const LINES_MAX: usize = 40;
    let wrong: Vec<_> = log.lines().filter(|line| !line.contains("\"level\":\"INFO\"")).collect();
    eprintln!("The log of a server, but for information:");
    for line in &wrong[wrong.len().saturating_sub(LINES_MAX)..] {
        eprintln!("{line}");
    }
}
