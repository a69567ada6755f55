//! A standby that streams from a primary and can be promoted.

use std::fs;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use super::{Postgres, USER};

/// Time limit for a standby to reach its primary.
const STREAMING_MAX: Duration = Duration::from_secs(30);

impl Postgres {
    /// Copies the cluster at `primary` and starts the copy as a hot standby, which replays the primary's log
    /// on arrival. Replication is asynchronous: a commit never waits for the standby.
    pub fn standby_of(primary: SocketAddr) -> Self {
        let standby = Self::prepare(Vec::new());
        let port = primary.port().to_string();
        standby.run("pg_basebackup", |command| {
            command.args(["--host=127.0.0.1", "--port", &port, "--username", USER, "--wal-method=stream"]);
            command.args(["--checkpoint=fast", "--no-sync", "--write-recovery-conf", "--pgdata"]);
            command.arg(standby.data())
        });
        standby.start_again();
        let started = Instant::now();
        while !standby.is_streaming() {
            assert!(started.elapsed() < STREAMING_MAX, "the standby does not reach its primary");
            thread::sleep(Duration::from_millis(20));
        }
        standby
    }

    /// Promotes the standby with the data received so far, and waits until the new primary takes writes.
    pub fn promote(&self) {
        self.run("pg_ctl", |command| {
            command.args(["promote", "--wait", "--timeout=60", "--pgdata"]).arg(self.data())
        });
    }

    /// Returns `true` if the WAL receiver is connected to the primary.
    fn is_streaming(&self) -> bool {
        let lines = super::frozen::children_of(self.pid());
        let titles = lines.iter().filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/cmdline")).ok());
        titles.into_iter().any(|title| title.contains("walreceiver streaming"))
    }
}
