//! A real server: one process with a data directory of its own, or three nodes over Redis and PostgreSQL.

use std::env;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use http::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::audit::Audit;
use crate::http::call;
use crate::topology::{Stores, Topology};

/// The longest start of a server, on a busy host.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Settings of every server: no limits on the rate of requests, and no leeway after the end of a token.
const SETTINGS: &[(&str, &str)] = &[
    ("SEATKEEPER_AUTH_LEEWAY_SECONDS", "0"),
    ("SEATKEEPER_LIMITS_LICENSES_ACQUIRES_PER_MINUTE", "100000"),
    ("SEATKEEPER_LIMITS_LICENSES_HEARTBEATS_PER_MINUTE", "100000"),
    ("SEATKEEPER_LIMITS_LICENSE_TOKENS_PER_ADDRESS_PER_MINUTE", "100000"),
];

/// A server. A drop kills its processes.
///
/// Clients begin with the first node, and the admin API of the last node answers the scenario. The faults of this type hit
/// the first node.
#[derive(Debug)]
pub struct Server {
    binary: PathBuf,
    data: TempDir,
    nodes: Vec<Node>,
    stores: Option<Stores>,
    admin_token: String,
}

/// A process of the server; `None` after a kill.
#[derive(Debug)]
struct Node {
    address: SocketAddr,
    process: Option<Child>,
}

/// A session, as the admin API lists it.
#[derive(Clone, Debug)]
pub struct Session {
    /// The id.
    pub id: String,
    /// The machine that holds the seat.
    pub machine: String,
}

impl Server {
    /// Starts the server of `SEATKEEPER_SERVER`, or the built one, on free ports.
    pub async fn start(topology: Topology) -> Self {
        let data = tempfile::Builder::new().prefix("seatkeeper-conformance-").tempdir().expect("a directory");
        let stores = topology.stores().await;
        let mut server =
            Self { binary: binary(), data, nodes: Vec::new(), stores, admin_token: String::new() };
        for _ in 0..topology.nodes() {
            let node = server.start_node(SocketAddr::from(([127, 0, 0, 1], 0))).await;
            server.nodes.push(node);
        }
        server.admin_token = server.token("ops", Some("admin"), "1h").await;
        server
    }

    /// Starts the first node again, on the port of its first start, and waits until the node listens.
    pub async fn restart(&mut self) {
        self.nodes[0] = self.start_node(self.nodes[0].address).await;
    }

    async fn start_node(&self, address: SocketAddr) -> Node {
        let mut command = self.command();
        command.args(["serve", "--listen", &address.to_string()]);
        let log = std::fs::File::options().create(true).append(true).open(self.data.path().join("log"));
        command.envs(SETTINGS.iter().copied()).stdout(Stdio::piped()).stderr(log.expect("a log"));
        let mut process = command.kill_on_drop(true).spawn().expect("the server's binary");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let listening = async {
            while let Ok(Some(line)) = lines.next_line().await {
                if let Some(url) = line.strip_prefix("listening on http://") {
                    return url.parse().expect("an address");
                }
            }
            panic!("the server did not start:\n{}", self.log());
        };
        let address = timeout(START_TIMEOUT, listening).await.expect("the server starts in time");
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Node { address, process: Some(process) }
    }

    /// Kills the first node as a crash does.
    pub async fn kill(&mut self) {
        if let Some(mut process) = self.nodes[0].process.take() {
            process.kill().await.expect("a process of this server");
        }
    }

    /// Stops the execution of the first node until [`Server::resume`].
    pub fn suspend(&self) {
        self.signal(Signal::STOP);
    }

    /// Ends [`Server::suspend`].
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let id = self.nodes[0].process.as_ref().and_then(Child::id).expect("a running node");
        kill_process(pid(id), signal).expect("a process of this server");
    }

    /// Returns the addresses of the nodes.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.nodes.iter().map(|node| node.address)
    }

    /// Returns the end of the log.
    #[must_use]
    pub fn log(&self) -> String {
        let log = std::fs::read_to_string(self.data.path().join("log")).unwrap_or_default();
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Returns a token of `user`.
    pub async fn token(&self, user: &str, scope: Option<&str>, ttl: &str) -> String {
        let mut command = self.command();
        command.args(["token", "--user", user, "--ttl", ttl]);
        if let Some(scope) = scope {
            command.args(["--scope", scope]);
        }
        output(command).await.trim().to_owned()
    }

    /// Creates a license, and returns its id.
    pub async fn create_license(&self, key: &str, seats: u32, ttl: Duration) -> String {
        let body =
            json!({"license_key": key, "max_seats": seats, "ttl_seconds": ttl.as_secs(), "clients": "key"});
        let license = self.admin(Method::POST, "licenses", Some(&body)).await;
        license["license_id"].as_str().expect("the id of a license").to_owned()
    }

    /// Changes a license.
    pub async fn update_license(&self, id: &str, change: &Value) {
        self.admin(Method::PATCH, &format!("licenses/{id}"), Some(change)).await;
    }

    /// Ends a session as an operator does.
    pub async fn revoke(&self, session: &str) {
        self.admin(Method::DELETE, &format!("sessions/{session}"), None).await;
    }

    /// Returns the live sessions.
    pub async fn live_sessions(&self) -> Vec<Session> {
        let list = self.admin(Method::GET, "sessions?live=true&limit=500", None).await;
        let items = list["items"].as_array().expect("a list of sessions").iter();
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        items
            .map(|item| Session { id: text(&item["session_id"]), machine: text(&item["machine_id"]) })
            .collect()
    }

    /// Returns the machines that hold a seat, in order.
    pub async fn live_machines(&self) -> Vec<String> {
        let mut machines: Vec<_> =
            self.live_sessions().await.into_iter().map(|session| session.machine).collect();
        machines.sort();
        machines
    }

    /// Waits until `machines`, in order, hold the seats; returns the time of the answer that told.
    pub async fn wait_for_machines(&self, machines: &[&str], limit: Duration) -> Instant {
        let start = Instant::now();
        loop {
            let live = self.live_machines().await;
            if live == machines {
                return Instant::now();
            }
            assert!(
                start.elapsed() < limit,
                "after {limit:?} the seats are held by {live:?}, not by {machines:?}"
            );
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Waits until the audit log tells the ends of all sessions of `machine`, by their reasons in order.
    pub async fn wait_for_ends(&self, machine: &str, reasons: &[&str], limit: Duration) {
        let start = Instant::now();
        loop {
            let audit = self.audit().await;
            let ends = audit.end_reasons(machine);
            if ends == reasons {
                return;
            }
            assert!(
                start.elapsed() < limit,
                "after {limit:?} {machine} has ended by {ends:?}, not by {reasons:?}"
            );
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// Returns the audit log.
    pub async fn audit(&self) -> Audit {
        let (mut records, mut cursor) = (Vec::new(), String::new());
        loop {
            let page = self.admin(Method::GET, &format!("audit?limit=500{cursor}"), None).await;
            records.extend(page["items"].as_array().expect("a list of records").iter().cloned());
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Audit::from_newest_first(records),
            }
        }
    }

    /// Proves the audit log with `seatkeeper audit verify`. Panics if the log breaks a promise.
    pub async fn verify_audit(&self) {
        let mut command = self.command();
        command.args(["audit", "verify", "--json"]);
        let proof: Value = serde_json::from_str(&output(command).await).expect("JSON of the proof");
        assert_eq!(proof["proven"], true, "the audit log is not proven: {proof}");
    }

    /// Sends a request to the admin API. Panics unless the request succeeds.
    async fn admin(&self, method: Method, path: &str, body: Option<&Value>) -> Value {
        let path = format!("/api/v1/admin/{path}");
        let address = self.nodes.last().expect("a server has nodes").address;
        let reply = call(address, &self.admin_token, method, &path, body).await;
        let (status, value) = reply.unwrap_or_else(|error| panic!("{path}: {error}\n{}", self.log()));
        assert!((200..300).contains(&status), "{path}: {status} {value}");
        value
    }

    /// Returns a command of the binary on the data directory, without settings of the test's own environment.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        for (name, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("SEATKEEPER_"))
        {
            command.env_remove(name);
        }
        match &self.stores {
            Some(stores) => command.envs(stores.settings()),
            None => command.env("SEATKEEPER_LEDGER_DATA_DIR", self.data.path()),
        };
        command
    }
}

/// Returns the id of a process.
pub(crate) fn pid(id: u32) -> Pid {
    i32::try_from(id).ok().and_then(Pid::from_raw).expect("the id of a process")
}

async fn output(mut command: Command) -> String {
    let output = command.output().await.expect("the server's binary");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).expect("text")
}

/// Returns the binary of the server: `SEATKEEPER_SERVER`, or the binary that cargo built next to the test.
fn binary() -> PathBuf {
    let binary = env::var_os("SEATKEEPER_SERVER").map_or_else(
        || {
            let test = env::current_exe().expect("the path of this test");
            test.parent().and_then(Path::parent).expect("the folder of builds").join("seatkeeper")
        },
        PathBuf::from,
    );
    assert!(
        binary.is_file(),
        "{} is no server: run `cargo build --bin seatkeeper`, or name a binary in SEATKEEPER_SERVER",
        binary.display()
    );
    binary
}
