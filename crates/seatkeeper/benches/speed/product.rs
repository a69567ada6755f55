//! The real server: the binary itself, with a ledger on disk.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use seatkeeper_load::Target;
use serde::Deserialize;
use serde_json::json;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tempfile::TempDir;

use crate::child::Child;
use crate::error::Error;

const BINARY: &str = env!("CARGO_BIN_EXE_seatkeeper");

/// Beside the build, for temporary files may be in memory.
const DISK: &str = env!("CARGO_TARGET_TMPDIR");

/// No session of a benchmark is over before it.
const TTL_SECONDS: u32 = 3_600;

/// The plan of the subscribers, one of those that are there from the start: 4 devices, and the stalest goes.
const PLAN: &str = "premium";

/// The ledger in the data directory.
const LEDGER: &str = "ledger.db";

/// How long nothing is put on record before the server counts as having nothing left to put there: longer
/// than a large commit takes on a busy machine.
const LEDGER_AT_REST: Duration = Duration::from_secs(1);

/// Between two looks at the ledger.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

/// A running server, and a token of its admin.
pub(crate) struct Product {
    address: String,
    token: String,
    // Dropped in this order: the server before what it writes to.
    server: Child,
    data: TempDir,
}

#[derive(Deserialize)]
struct License {
    license_key: String,
}

impl Product {
    pub(crate) fn start() -> Result<Self, Error> {
        let data = directory()?;
        let mut command = Command::new(BINARY);
        let command = command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(data.path());
        let mut server = Child::start(command.stderr(Stdio::null()))?;
        let address = server.says("listening on ")?;
        let token = token(data.path(), "bench", "admin service")?;
        Ok(Self { address, token, server, data })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub(crate) fn target(&self) -> Result<Target, Error> {
        Ok(Target::new(&self.address, Some(&self.token))?)
    }

    /// Another server, asked with the same token.
    pub(crate) fn with_our_token(&self, address: &str) -> Result<Target, Error> {
        Ok(Target::new(address, Some(&self.token))?)
    }

    /// Makes a license of so many seats, and gives its key.
    pub(crate) async fn license(&self, seats: u32) -> Result<String, Error> {
        let url = format!("{}/api/v1/admin/licenses", self.address);
        let ask = json!({ "max_seats": seats, "ttl_seconds": TTL_SECONDS });
        let request = reqwest::Client::new().post(url).bearer_auth(&self.token).json(&ask);
        let license: License = request.send().await?.error_for_status()?.json().await?;
        Ok(license.license_key)
    }

    /// Makes so many subscribers, and gives the server as asked by each.
    pub(crate) async fn subscribers(&self, count: usize) -> Result<Vec<Target>, Error> {
        let (client, url) = (reqwest::Client::new(), format!("{}/api/v1/admin/subscriptions", self.address));
        let mut subscribers = Vec::with_capacity(count);
        for number in 0..count {
            let user = format!("subscriber-{number}");
            let ask = json!({ "user": user, "plan": PLAN });
            client.post(&url).bearer_auth(&self.token).json(&ask).send().await?.error_for_status()?;
            let token = token(self.data.path(), &user, "")?;
            subscribers.push(Target::new(&self.address, Some(&token))?);
        }
        Ok(subscribers)
    }

    /// Waits until nothing more is put on record, and says how long that took.
    pub(crate) async fn caught_up(&self) -> Result<Duration, Error> {
        let options = SqliteConnectOptions::new().filename(self.data.path().join(LEDGER)).read_only(true);
        let mut ledger = options.connect().await?;
        let (began, mut grew_at, mut newest) = (Instant::now(), None, None);
        loop {
            let record: Option<i64> =
                sqlx::query_scalar("SELECT max(id) FROM audit_log").fetch_one(&mut ledger).await?;
            if newest.is_some() && record != newest {
                grew_at = Some(Instant::now());
            }
            newest = record;
            if grew_at.unwrap_or(began).elapsed() > LEDGER_AT_REST {
                break;
            }
            tokio::time::sleep(LOOK_INTERVAL).await;
        }
        ledger.close().await?;
        Ok(grew_at.map_or(Duration::ZERO, |at| at.duration_since(began)))
    }

    /// Takes so many seats of a license, over so many connections at once, and keeps them.
    pub(crate) async fn fill(&self, license: &str, seats: u32, connections: usize) -> Result<(), Error> {
        let client = reqwest::Client::new();
        let acquire = |machine: u32| {
            let url = format!("{}/api/v1/licenses/acquire", self.address);
            let ask = json!({ "license_key": license, "machine_id": format!("filler-{machine}") });
            let request = client.post(url).bearer_auth(&self.token).json(&ask);
            async { request.send().await?.error_for_status()?.bytes().await.map(drop) }
        };
        let mut asked = futures_util::stream::iter(0..seats).map(acquire).buffer_unordered(connections);
        while let Some(answer) = asked.next().await {
            answer?;
        }
        Ok(())
    }
}

/// A new directory on a disk.
pub(crate) fn directory() -> Result<TempDir, Error> {
    tempfile::tempdir_in(DISK).map_err(Error::system("make a directory"))
}

fn token(data: &Path, user: &str, scope: &str) -> Result<String, Error> {
    let mut command = Command::new(BINARY);
    command.args(["token", "--tenant", "default", "--user", user, "--scope", scope]);
    let output = command.args(["--ttl", "6h", "--data-dir"]).arg(data).output();
    let output = output.map_err(Error::system("make a token"))?;
    let token = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if output.status.success() { Ok(token) } else { Err(Error::Unclear { said: token }) }
}
