//! A SQLite directory of its own for each test.

use std::path::Path;

use seatkeeper_ledger::{Ledger, Location};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Executor as _};
use tempfile::TempDir;

pub(crate) type Connection = sqlx::SqliteConnection;

/// An expression for a new random UUID.
pub(crate) const ANY_UUID: &str = "randomblob(16)";

/// All rows about jobs as text.
pub(crate) const JOBS: &str = "
    SELECT 'job' || json_array(name, interval_ms, next_run_at, retry_at, last_run_at, locked_by,
        locked_at, locked_until, fencing_token, failures, last_error) AS row FROM jobs
    UNION ALL
    SELECT 'run' || json_array(job, fencing_token, worker, scheduled_at, started_at, finished_at,
        outcome, error) FROM job_runs
    ORDER BY 1";

/// Returns an expression for a time in seconds since 1970.
pub(crate) fn time_at(seconds: &str) -> String {
    format!("strftime('%Y-%m-%dT%H:%M:%fZ', {seconds}, 'unixepoch')")
}

/// The location of a test's ledger, deleted on drop.
pub(crate) struct TestLedger(TempDir);

impl TestLedger {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn location(&self) -> Location {
        self.path().into()
    }

    /// Clones the handle, because only one process may own a SQLite ledger.
    pub(crate) async fn another(&self, ledger: &Ledger) -> Ledger {
        ledger.clone()
    }

    /// Connects to the database directly, bypassing the ledger.
    pub(crate) async fn connect(&self) -> Connection {
        SqliteConnectOptions::new().filename(self.path().join("ledger.db")).connect().await.unwrap()
    }

    /// Connects to the database directly, with foreign keys disabled and the audit log writable.
    pub(crate) async fn connect_unguarded(&self) -> Connection {
        let mut connection = self.connect().await;
        connection.execute("PRAGMA foreign_keys = OFF").await.unwrap();
        connection.execute("DROP TRIGGER IF EXISTS audit_log_is_append_only").await.unwrap();
        connection
    }
}
