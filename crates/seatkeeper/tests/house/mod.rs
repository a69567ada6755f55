//! A real server for a test: the binary itself, on a free port, with a data directory of its own; or several
//! of it over a Redis and a database.
//!
//! Every test file includes this module and uses some of it. It says by `TOPOLOGY` what a server is there.
#![allow(dead_code, unused_imports, reason = "no test file uses all of the house")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a house that cannot be built fails the test"
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
use process::Server;
pub(crate) use process::{BIN, Output, command, run, run_with};
pub(crate) use scrape::Scrape;
pub(crate) use topology::{LICENSE_TOKEN_KEY_FILE, Topology, write_ed25519_key};

use crate::TOPOLOGY;
use topology::Backing;

/// The tenant of whoever does not care.
pub(crate) const TENANT: &str = "default";

/// Longer than any test, also by a node's clock that is an hour ahead.
const TOKEN_TTL: &str = "24h";

/// No limits on how often one may ask: tests that are not about them ask faster than any client.
const UNLIMITED: [&str; 9] = [
    "LIMITS_LICENSES_ACQUIRES_PER_MINUTE",
    "LIMITS_LICENSES_HEARTBEATS_PER_MINUTE",
    "LIMITS_DEVICES_ACQUIRES_PER_MINUTE",
    "LIMITS_DEVICES_HEARTBEATS_PER_MINUTE",
    "LIMITS_CAPACITIES_ACQUIRES_PER_MINUTE",
    "LIMITS_SERVICE_ACQUIRES_PER_MINUTE",
    "LIMITS_SERVICE_HEARTBEATS_PER_MINUTE",
    "LIMITS_LICENSE_TOKENS_PER_ADDRESS_PER_MINUTE",
    "LIMITS_LICENSE_TOKENS_PER_KEY_PER_MINUTE",
];

/// What a node logs when the database that it shares with others is slow.
const LEDGER_SLOW: &str = "the ledger does not answer";

/// A server under test: one process, or nodes that are one to their clients.
///
/// When a test that went well is over, the house is checked as it is dropped: the server stops when it is
/// asked to, it has logged no error, and the audit log is proved. Whatever happened, no process stays.
pub(crate) struct House {
    program: PathBuf,
    servers: Vec<Server>,
    doors: Doors,
    variables: Vec<(String, String)>,
    // After the servers: what they use goes when they are gone.
    backing: Option<Backing>,
    dir: TempDir,
}

impl House {
    /// A server with the usual settings, but for limits on how often one may ask.
    pub(crate) fn open() -> Self {
        Self::open_with(&[])
    }

    /// A server with settings of its own: `("LICENSES_TTL_SECONDS", "2")`.
    pub(crate) fn open_with(settings: &[(&str, &str)]) -> Self {
        Self::open_in(&[], settings)
    }

    /// Likewise, in an environment that has these besides.
    pub(crate) fn open_in(environment: &[(&str, PathBuf)], settings: &[(&str, &str)]) -> Self {
        Self::open_as(BIN.as_ref(), environment, settings)
    }

    /// Likewise, by this program, which may be another version.
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
        let mut house = Self {
            program: program.to_owned(),
            servers: Vec::new(),
            doors: Doors::default(),
            variables: unlimited.chain(shared).chain(own).chain(environment).collect(),
            backing,
            dir: tempfile::tempdir().expect("a directory"),
        };
        house.start();
        house
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

    /// Asks the server, which is one process, to stop, starts this program at its address, and gives what the old one logged.
    pub(crate) fn replace_by(&mut self, program: &Path) -> String {
        let (address, dir) = (self.url().trim_start_matches("http://").to_owned(), self.dir_of(0));
        let (status, log) = self.stop();
        assert_eq!(status.code(), Some(0), "{log}");
        self.program = program.to_owned();
        self.servers.push(Server::start(program, &address, &dir, &self.variables));
        log
    }

    /// Ends it as a power cut would: all its nodes, but not what they share.
    pub(crate) fn kill(&mut self) {
        assert!(!self.servers.is_empty(), "a running server");
        self.servers.drain(..).for_each(|server| drop(server.kill()));
    }

    /// Asks it to stop with SIGTERM and waits until it has. Gives how it exited, the worst of its nodes, and
    /// what it logged.
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

    /// Where it listens: `http://127.0.0.1:PORT`. Each call gives the next of its nodes.
    pub(crate) fn url(&self) -> &str {
        self.doors.next()
    }

    /// Where its nodes listen.
    pub(crate) fn doors(&self) -> &Doors {
        &self.doors
    }

    /// The id of its process: of the first, if it has several.
    pub(crate) fn pid(&self) -> u32 {
        self.servers.first().expect("a running server").pid()
    }

    /// Its data directory: of the first node, if it has several.
    pub(crate) fn data_dir(&self) -> &Path {
        self.dir.path()
    }

    fn dir_of(&self, node: usize) -> PathBuf {
        if node == 0 { self.data_dir().to_owned() } else { self.path(&format!("node-{node}")) }
    }

    /// A file of its data directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Where its ledger is.
    pub(crate) fn ledger(&self) -> Location {
        self.backing.as_ref().map_or_else(|| Location::from(self.data_dir()), Backing::ledger)
    }

    /// What its tokens are made with.
    pub(crate) fn token_settings(&self) -> Settings {
        let mut settings = Settings::default();
        settings.ledger.data_dir = self.data_dir().to_owned();
        if let Some(backing) = &self.backing {
            backing.believe(&mut settings.auth);
        }
        settings
    }

    /// A token for a user of the usual tenant.
    pub(crate) fn token(&self, user: &str) -> String {
        self.token_of(TENANT, user, "")
    }

    /// A token for any tenant, user and scopes.
    pub(crate) fn token_of(&self, tenant: &str, user: &str, scope: &str) -> String {
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
            TOKEN_TTL,
            "--data-dir",
            data_dir,
        ];
        let output = run_with(&self.variables, &args);
        assert!(output.status.success(), "{}", output.stderr);
        output.stdout.trim().to_owned()
    }

    /// A client that speaks for a user of the usual tenant.
    pub(crate) fn client(&self, user: &str) -> Client {
        self.client_with(self.token(user))
    }

    /// A client that speaks for an admin of the usual tenant.
    pub(crate) fn admin(&self) -> Client {
        self.client_with(self.token_of(TENANT, "ops", "admin"))
    }

    /// A client with this token; each of its requests goes to the next node.
    pub(crate) fn client_with(&self, token: String) -> Client {
        Client::at(self.doors.clone(), token)
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
        run_with(&self.variables, &all)
    }

    /// Proves the audit log, and fails the test with the finding if it cannot be proved.
    pub(crate) fn prove(&self) -> String {
        let data_dir = self.data_dir().to_str().expect("a path in Unicode");
        let output = run_with(&self.variables, &["audit", "verify", "--data-dir", data_dir]);
        assert!(output.status.success(), "{}{}", output.stdout, output.stderr);
        output.stdout
    }
}

fn variable(setting: &str) -> String {
    format!("SEATKEEPER_{setting}")
}

impl Drop for House {
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
            // A machine that is busy with other tests may keep PostgreSQL from answering for a while.
            let errors = errors.filter(|line| !(self.backing.is_some() && line.contains(LEDGER_SLOW)));
            assert_eq!(errors.count(), 0, "{log}");
            self.prove();
        }
    }
}

/// The latest lines of a log that are no mere information, beside why the test failed.
fn show_what_was_wrong(log: &str) {
    const LINES_MAX: usize = 40;
    let wrong: Vec<_> = log.lines().filter(|line| !line.contains("\"level\":\"INFO\"")).collect();
    eprintln!("The log of a server, but for information:");
    for line in &wrong[wrong.len().saturating_sub(LINES_MAX)..] {
        eprintln!("{line}");
    }
}
