//! PostgreSQL, in a database of its own.

use seatkeeper_ledger::{Ledger, Location, Settings};
use seatkeeper_testbed::postgres::{self, Database};
use sqlx::{Connection as _, Executor as _};

pub(crate) type Connection = sqlx::PgConnection;

/// An expression that gives another UUID each time.
pub(crate) const ANY_UUID: &str = "gen_random_uuid()";

/// Takes a live session for ended, for another's, and one that never was for live, where that can be said of it alone.
pub(crate) const LIVE_MISTAKEN: &[&str] = &[
    "DELETE FROM live_sessions
     WHERE session_id = (SELECT session_id FROM live_sessions ORDER BY session_id LIMIT 1)",
    "UPDATE live_sessions SET holder = 'x'
     WHERE session_id = (SELECT session_id FROM live_sessions ORDER BY session_id LIMIT 1)",
    "INSERT INTO live_sessions
     SELECT bucket, gen_random_uuid(), tenant_id, pool_kind, pool_id, 'x' FROM live_sessions LIMIT 1",
    "INSERT INTO live_sessions
     SELECT bucket, gen_random_uuid(), tenant_id, pool_kind, 'x', 'x' FROM live_sessions LIMIT 1",
];

/// All that is on record of jobs, row by row.
pub(crate) const JOBS: &str = "
    SELECT 'job' || jobs AS row FROM jobs UNION ALL SELECT 'run' || job_runs FROM job_runs ORDER BY 1";

/// An expression for the time so many seconds after 1970.
pub(crate) fn time_at(seconds: &str) -> String {
    format!("to_timestamp({seconds})")
}

/// Where one test's ledger is. Deleted when dropped.
pub(crate) struct Place(Database);

impl Place {
    pub(crate) fn new() -> Self {
        Self(postgres::database())
    }

    pub(crate) fn location(&self) -> Location {
        Location::Postgres(self.0.url().parse().unwrap())
    }

    /// The same ledger, as another process opens it.
    pub(crate) async fn another(&self, _ledger: &Ledger) -> Ledger {
        Ledger::open(Settings::new(self.location())).await.unwrap()
    }

    /// Behind the ledger's back.
    pub(crate) async fn connect(&self) -> Connection {
        Connection::connect(&self.0.url()).await.unwrap()
    }

    /// Likewise, where no trigger and no reference holds back who tampers.
    pub(crate) async fn connect_unguarded(&self) -> Connection {
        let mut connection = self.connect().await;
        connection.execute("SET session_replication_role = replica").await.unwrap();
        connection
    }
}
