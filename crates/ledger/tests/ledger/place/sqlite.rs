//! SQLite, in a directory of its own.

use std::path::Path;

use seatkeeper_ledger::{Ledger, Location};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Executor as _};
use tempfile::TempDir;

pub(crate) type Connection = sqlx::SqliteConnection;

/// An expression that gives another UUID each time.
pub(crate) const ANY_UUID: &str = "randomblob(16)";

/// Takes a live session for ended, and the like: none, where a session that has not ended is live.
pub(crate) const LIVE_MISTAKEN: &[&str] = &[];

/// All that is on record of jobs, row by row.
pub(crate) const JOBS: &str = "
    SELECT 'job' || json_array(name, interval_ms, next_run_at, retry_at, last_run_at, locked_by,
        locked_at, locked_until, fencing_token, failures, last_error) AS row FROM jobs
    UNION ALL
    SELECT 'run' || json_array(job, fencing_token, worker, scheduled_at, started_at, finished_at,
        outcome, error) FROM job_runs
    ORDER BY 1";

/// An expression for the time so many seconds after 1970.
pub(crate) fn time_at(seconds: &str) -> String {
    format!("strftime('%Y-%m-%dT%H:%M:%fZ', {seconds}, 'unixepoch')")
}

/// Where one test's ledger is. Deleted when dropped.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn location(&self) -> Location {
        self.path().into()
    }

    /// Another handle on the same ledger: only a process may own one.
    pub(crate) async fn another(&self, ledger: &Ledger) -> Ledger {
        ledger.clone()
    }

    /// Behind the ledger's back.
    pub(crate) async fn connect(&self) -> Connection {
        SqliteConnectOptions::new().filename(self.path().join("ledger.db")).connect().await.unwrap()
    }

    /// Likewise, where no trigger and no reference holds back who tampers.
    pub(crate) async fn connect_unguarded(&self) -> Connection {
        let mut connection = self.connect().await;
        connection.execute("PRAGMA foreign_keys = OFF").await.unwrap();
        connection.execute("DROP TRIGGER IF EXISTS audit_log_is_append_only").await.unwrap();
        connection
    }
}
