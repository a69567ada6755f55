//! How the registry is connected with its database.

use std::time::Duration;

use seatkeeper_postgres::{Connections, PostgresUrl, Transaction, migration_files, migrator};
use sqlx::Postgres;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPoolOptions;

use super::fault::Fault;

/// How long a caller waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// How a transaction begins in which a turn on a bucket is waited for, or many sessions may change.
const BEGIN_LONG: &str = "BEGIN; SET LOCAL statement_timeout = '30s'";

/// What each connection is told as it begins.
const SETTINGS: [(&str, &str); 8] = [
    // The functions read after they have waited, and must see what they waited for.
    ("default_transaction_isolation", "read committed"),
    ("statement_timeout", "5s"),
    // A node that is frozen in the middle of a step holds up its bucket no longer than this.
    ("idle_in_transaction_session_timeout", "3s"),
    // Every statement finds its few rows by an index. A plan that was made while the tables were small, or when
    // little was known of them, must do so as well, for it is kept.
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("jit", "off"),
];

/// Connects lazily: a database that is away makes calls fail, and does so until it is back.
pub(super) fn connections(url: &PostgresUrl, connections_max: u32) -> Result<Connections, Fault> {
    let pool = PgPoolOptions::new().max_connections(connections_max).acquire_timeout(ACQUIRE_TIMEOUT);
    Ok(Connections::lazy(url, pool, "seatkeeper registry", &SETTINGS)?)
}

/// Begins a transaction in which a turn on a bucket is waited for, or many sessions may change.
pub(super) async fn begin_long(connection: PoolConnection<Postgres>) -> Result<Transaction, sqlx::Error> {
    Transaction::begin(connection, BEGIN_LONG).await
}

/// Brings the tables up to date, in a schema of their own.
pub(super) async fn migrate(connections: &Connections) -> Result<(), sqlx::migrate::MigrateError> {
    let mut migrations = migrator(&migration_files!("../../migrations":
        "0001_tables.sql",
        "0002_clock.sql",
        "0003_look.sql",
        "0004_write.sql",
        "0005_journal.sql",
        "0006_rebuild.sql",
        "0007_clock_lease.sql",
        "0008_repair_clock.sql",
    ));
    migrations.create_schema("registry");
    migrations.dangerous_set_table_name("registry.migrations");
    migrations.run(connections.pool().await?).await
}
