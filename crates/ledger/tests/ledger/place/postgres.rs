//! A database of its own in PostgreSQL for each test.

use seatkeeper_ledger::{Ledger, Location, Settings};
use seatkeeper_testbed::postgres::{self, Database};
use sqlx::{Connection as _, Executor as _};

pub(crate) type Connection = sqlx::PgConnection;

/// An expression for a new random UUID.
pub(crate) const ANY_UUID: &str = "gen_random_uuid()";

/// All rows about jobs as text.
pub(crate) const JOBS: &str = "
    SELECT 'job' || jobs AS row FROM jobs UNION ALL SELECT 'run' || job_runs FROM job_runs ORDER BY 1";

/// Returns an expression for a time in seconds since 1970.
pub(crate) fn time_at(seconds: &str) -> String {
    format!("to_timestamp({seconds})")
}

/// The location of a test's ledger, deleted on drop.
pub(crate) struct TestLedger(Database);

impl TestLedger {
    pub(crate) fn new() -> Self {
        Self(postgres::database())
    }

    pub(crate) fn location(&self) -> Location {
        Location::Postgres(self.0.url().parse().unwrap())
    }

    /// Opens the ledger a second time, as a separate process would.
    pub(crate) async fn another(&self, _ledger: &Ledger) -> Ledger {
        Ledger::open(Settings::new(self.location())).await.unwrap()
    }

    /// Connects to the database directly, bypassing the ledger.
    pub(crate) async fn connect(&self) -> Connection {
        Connection::connect(&self.0.url()).await.unwrap()
    }

    /// Connects to the database directly, with triggers and foreign keys disabled.
    pub(crate) async fn connect_unguarded(&self) -> Connection {
        let mut connection = self.connect().await;
        connection.execute("SET session_replication_role = replica").await.unwrap();
        connection
    }
}
