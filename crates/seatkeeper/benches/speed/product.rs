//! The real server: the binary with a ledger on disk.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use reqwest::StatusCode;
use seatkeeper_load::Target;
use serde::Deserialize;
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

use crate::child::Child;
use crate::error::Error;
use crate::hostile::attack::Attack;

/// This build of the server.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_seatkeeper");

/// The value of every rate limit: too high to be reached, but in effect, so that the cost of counting is
/// measured.
const UNREACHED: &str = "60000000";
const LIMITS: [&str; 5] = [
    "SEATKEEPER_LIMITS_LICENSES_ACQUIRES_PER_MINUTE",
    "SEATKEEPER_LIMITS_DEVICES_ACQUIRES_PER_MINUTE",
    "SEATKEEPER_LIMITS_DEVICES_HEARTBEATS_PER_MINUTE",
    "SEATKEEPER_LIMITS_SERVICE_ACQUIRES_PER_MINUTE",
    "SEATKEEPER_LIMITS_SERVICE_HEARTBEATS_PER_MINUTE",
];

/// Parent of data directories, beside the build, because `/tmp` may be in memory.
const DISK: &str = env!("CARGO_TARGET_TMPDIR");

/// TTL of every session, longer than any benchmark.
pub(crate) const TTL_SECONDS: u32 = 3_600;

/// The tenant of every license.
pub(crate) const TENANT: &str = "default";

/// The plan of every subscriber, predefined in the server: 4 devices, and the stalest is evicted.
const PLAN: &str = "premium";

/// Time limit for the creation of a license, retries included.
const LICENSE_MAX: Duration = Duration::from_secs(30);

/// Pause before a license is created again after a 503.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// Pause between two readings of `journal_depth`.
const LOOK_INTERVAL: Duration = Duration::from_millis(25);

/// A running server, and the token of an admin.
pub(crate) struct Product {
    client: reqwest::Client,
    address: String,
    token: String,
    /// The token of a user without scopes.
    viewer_token: String,
    // Fields drop in order: the server before its data directory.
    server: Child,
    data: TempDir,
}

#[derive(Deserialize)]
struct License {
    license_id: Uuid,
    license_key: String,
}

#[derive(Deserialize)]
struct Seat {
    session_id: Uuid,
}

impl Product {
    /// Starts this build as an embedded server.
    pub(crate) fn start() -> Result<Self, Error> {
        Self::start_as(BINARY.as_ref())
    }

    /// Starts `program` as an embedded server.
    pub(crate) fn start_as(program: &Path) -> Result<Self, Error> {
        Self::start_with(Command::new(program), &[])
    }

    /// Starts this build as an embedded server with a settings file. The file names the key of the tokens.
    pub(crate) fn start_configured(config: &Path) -> Result<Self, Error> {
        let flags = ["--config".as_ref(), config.as_os_str()];
        Self::start_with(Command::new(BINARY), &flags)
    }

    /// Starts this build as a node over a Redis and a PostgreSQL database.
    pub(crate) fn start_over(redis: &str, postgres: &str) -> Result<Self, Error> {
        Self::start_over_as(BINARY.as_ref(), redis, postgres)
    }

    /// Starts `program` as a node over a Redis and a PostgreSQL database.
    pub(crate) fn start_over_as(program: &Path, redis: &str, postgres: &str) -> Result<Self, Error> {
        let flags = ["--registry", redis, "--ledger", postgres].map(OsStr::new);
        Self::start_with(Command::new(program), &flags)
    }

    /// Starts this build as an embedded server under Callgrind, which writes its counts to files that begin with `counts`.
    pub(crate) fn start_counted(counts: &Path) -> Result<Self, Error> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--instr-atstart=no"]);
        command.arg(format!("--callgrind-out-file={}", counts.display())).arg(BINARY);
        Self::start_with(command, &[])
    }

    fn start_with(mut command: Command, flags: &[&OsStr]) -> Result<Self, Error> {
        let data = directory()?;
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data.path()).args(flags);
        command.envs(LIMITS.map(|limit| (limit, UNREACHED)));
        command.env("SEATKEEPER_DEVICES_TTL_SECONDS", TTL_SECONDS.to_string());
        let mut server = Child::start(command.stderr(Stdio::null()))?;
        let address = server.says("listening on ")?;
        let config = flags.iter().skip_while(|flag| **flag != "--config").take(2);
        let config: Vec<_> = config.collect();
        let of_viewer = token(data.path(), &config, "viewer", "")?;
        let token = token(data.path(), &config, "bench", "admin service")?;
        let client = reqwest::Client::new();
        Ok(Self { client, address, token, viewer_token: of_viewer, server, data })
    }

    /// Returns the base URL of the server.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub(crate) fn target(&self) -> Result<Target, Error> {
        Ok(Target::new(&self.address, Some(&self.token))?)
    }

    /// Starts an attack on the server, which lasts until the returned process is dropped.
    pub(crate) fn attacked_by(&self, attack: Attack) -> Result<Child, Error> {
        let address = self.address.strip_prefix("http://").unwrap_or(&self.address);
        Child::in_role(&["attack", &format!("{attack:?}").to_lowercase(), address, &self.token])
    }

    /// Returns a load target at another server's address, with our token.
    pub(crate) fn with_our_token(&self, address: &str) -> Result<Target, Error> {
        Ok(Target::new(address, Some(&self.token))?)
    }

    /// Creates a license and returns its key.
    pub(crate) async fn license(&self, seats: u32) -> Result<String, Error> {
        Ok(self.new_license(seats).await?.license_key)
    }

    /// Creates a license and returns its id.
    pub(crate) async fn license_id(&self, seats: u32) -> Result<Uuid, Error> {
        Ok(self.new_license(seats).await?.license_id)
    }

    /// Creates a license. A 503 is retried, because a commit may exceed its time limit while a benchmark fills the ledger.
    async fn new_license(&self, seats: u32) -> Result<License, Error> {
        let url = format!("{}/api/v1/admin/licenses", self.address);
        let ask = json!({ "max_seats": seats, "ttl_seconds": TTL_SECONDS });
        let began = Instant::now();
        loop {
            let answer = self.client.post(&url).bearer_auth(&self.token).json(&ask).send().await?;
            if answer.status() == StatusCode::SERVICE_UNAVAILABLE && began.elapsed() < LICENSE_MAX {
                eprintln!("a license was refused, trying again: {}", answer.text().await?);
                tokio::time::sleep(RETRY_INTERVAL).await;
                continue;
            }
            return Ok(answer.error_for_status()?.json().await?);
        }
    }

    /// Creates `count` subscribers, and returns a load target for each.
    pub(crate) async fn subscribers(&self, count: usize) -> Result<Vec<Target>, Error> {
        let (client, url) = (&self.client, format!("{}/api/v1/admin/subscriptions", self.address));
        let mut subscribers = Vec::with_capacity(count);
        for number in 0..count {
            let user = format!("subscriber-{number}");
            let ask = json!({ "user": user, "plan": PLAN });
            client.post(&url).bearer_auth(&self.token).json(&ask).send().await?.error_for_status()?;
            let token = token(self.data.path(), [""; 0], &user, "")?;
            subscribers.push(Target::new(&self.address, Some(&token))?);
        }
        Ok(subscribers)
    }

    /// Subscribes a user, and moves the user's home to a peer region.
    pub(crate) async fn move_away(&self, user: &str, region: &str) -> Result<(), Error> {
        let post = async |path: &str, ask: serde_json::Value| {
            let request = self.client.post(format!("{}{path}", self.address)).bearer_auth(&self.token);
            request.json(&ask).send().await?.error_for_status()
        };
        post("/api/v1/admin/subscriptions", json!({ "user": user, "plan": PLAN })).await?;
        let moved = post("/api/v1/admin/homes/moves", json!({ "user": user, "to": region })).await?;
        match moved.status() {
            StatusCode::OK => Ok(()),
            _ => Err(Error::Unclear { said: moved.text().await? }),
        }
    }

    /// Waits until no event waits for the ledger, and returns the length of the wait.
    pub(crate) async fn caught_up(&self) -> Result<Duration, Error> {
        let began = Instant::now();
        while self.metric("journal_depth").await? > 0.0 {
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        Ok(began.elapsed())
    }

    /// Takes a screen for a device of a user without scopes, and returns a load target of the user and the session.
    pub(crate) async fn screen(&self) -> Result<(Target, Uuid), Error> {
        let url = format!("{}/api/v1/devices/sessions", self.address);
        let ask = json!({ "device_id": "tv", "device_type": "tv" });
        let answer = self.client.post(url).bearer_auth(&self.viewer_token).json(&ask).send().await?;
        let session = answer.error_for_status()?.json::<Seat>().await?.session_id;
        Ok((Target::new(&self.address, Some(&self.viewer_token))?, session))
    }

    /// Returns the sum of a metric of the server over all labels.
    pub(crate) async fn metric(&self, name: &str) -> Result<f64, Error> {
        let url = format!("{}/metrics", self.address);
        let metrics =
            self.client.get(url).bearer_auth(&self.token).send().await?.error_for_status()?.text().await?;
        let samples = metrics.lines().filter_map(|line| line.strip_prefix(name));
        let values: Vec<f64> = samples
            .filter(|sample| sample.starts_with([' ', '{']))
            .filter_map(|sample| sample.rsplit_once(' ')?.1.parse().ok())
            .collect();
        if values.is_empty() { Err(Error::Unclear { said: metrics }) } else { Ok(values.iter().sum()) }
    }

    /// Renews a session.
    pub(crate) async fn heartbeat(&self, session: Uuid) -> Result<(), Error> {
        let url = format!("{}/api/v1/licenses/sessions/{session}/heartbeat", self.address);
        let answer = self.client.patch(url).bearer_auth(&self.token).send().await?;
        answer.error_for_status()?.bytes().await?;
        Ok(())
    }

    /// Asks for a seat of a license without free seats.
    pub(crate) async fn denied(&self, license: &str) -> Result<(), Error> {
        let url = format!("{}/api/v1/licenses/acquire", self.address);
        let ask = json!({ "license_key": license, "machine_id": "another" });
        let answer = self.client.post(url).bearer_auth(&self.token).json(&ask).send().await?;
        let status = answer.status();
        answer.bytes().await?;
        if status == StatusCode::FORBIDDEN {
            Ok(())
        } else {
            Err(Error::Unclear { said: status.to_string() })
        }
    }

    /// Takes `seats` seats of a license over `connections` connections, and returns the sessions.
    pub(crate) async fn fill(
        &self,
        license: &str,
        seats: u32,
        connections: usize,
    ) -> Result<Vec<Uuid>, Error> {
        let client = &self.client;
        let acquire = |machine: u32| {
            let url = format!("{}/api/v1/licenses/acquire", self.address);
            let ask = json!({ "license_key": license, "machine_id": format!("filler-{machine}") });
            let request = client.post(url).bearer_auth(&self.token).json(&ask);
            async { request.send().await?.error_for_status()?.json::<Seat>().await }
        };
        let mut asked = futures_util::stream::iter(0..seats).map(acquire).buffer_unordered(connections);
        let mut held = Vec::new();
        while let Some(seat) = asked.next().await {
            held.push(seat?.session_id);
        }
        Ok(held)
    }
}

/// Creates a temporary directory on disk.
pub(crate) fn directory() -> Result<TempDir, Error> {
    tempfile::tempdir_in(DISK).map_err(Error::system("make a directory"))
}

/// Makes a token. `config` is the flag of a settings file, if there is one.
fn token(
    data: &Path,
    config: impl IntoIterator<Item = impl AsRef<OsStr>>,
    user: &str,
    scope: &str,
) -> Result<String, Error> {
    let mut command = Command::new(BINARY);
    command.args(["token", "--tenant", TENANT, "--user", user, "--scope", scope]);
    let output = command.args(config).args(["--ttl", "6h", "--data-dir"]).arg(data).output();
    let output = output.map_err(Error::system("make a token"))?;
    let token = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() { Ok(token) } else { Err(Error::Unclear { said: token }) }
}
