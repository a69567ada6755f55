//! Connections and migrations of the registry's database.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use seatkeeper_postgres::{Connections, PostgresUrl, Transaction, migrate_tables, migration_files, migrator};
use sqlx::Postgres;
use sqlx::migrate::Migrator;
use sqlx::pool::PoolConnection;
use sqlx::postgres::PgPoolOptions;

use super::copies::Copies;
use super::fault::Fault;
use crate::Error;

/// The schema of the registry.
const SCHEMA: &str = "registry";

/// The table of applied migrations.
const MIGRATIONS_TABLE: &str = "registry.migrations";

static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    let mut migrations = migrator(&migration_files!("../../migrations":
        "0001_tables.sql",
        "0002_clock.sql",
        "0003_look.sql",
        "0004_write.sql",
        "0005_journal.sql",
        "0006_rebuild.sql",
        "0007_clock_lease.sql",
        "0008_repair_clock.sql",
        "0009_lasting.sql",
    ));
    migrations.create_schema(SCHEMA);
    migrations.dangerous_set_table_name(MIGRATIONS_TABLE);
    migrations
});

/// Time limit for a caller's wait for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// Start of a transaction that waits for a bucket's lock, or may change many sessions.
const BEGIN_LONG: &str = "BEGIN; SET LOCAL statement_timeout = '30s'";

/// The application name of each connection.
const NAME: &str = "seatkeeper registry";

/// Settings of each connection that serves.
const SETTINGS: [(&str, &str); 8] = [
    // Functions read after they waited for a lock, and must see the changes of the previous owner.
    ("default_transaction_isolation", "read committed"),
    ("statement_timeout", "5s"),
    // Bounds the time for which a node that froze in the middle of a step blocks the bucket.
    ("idle_in_transaction_session_timeout", "3s"),
    // Every statement finds its few rows by an index. Plans are cached, so a plan made with small tables or
    // missing statistics must use the index as well.
    ("enable_seqscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("jit", "off"),
];

/// Connects lazily: while the database is unreachable, each call fails. Each new connection tells `copies` the
/// database's identity, which only a database with a registry has.
pub(super) fn connections(
    url: &PostgresUrl,
    connections_max: u32,
    copies: &Arc<Copies>,
) -> Result<Connections, Fault> {
    let copies = Arc::clone(copies);
    let pool = options(connections_max).after_connect(move |connection, _| {
        let copies = Arc::clone(&copies);
        Box::pin(async move { copies.note(connection).await })
    });
    Ok(Connections::lazy(url, pool, NAME, &SETTINGS)?)
}

/// Connects lazily, with a single connection, to a database that may have no registry.
pub(super) fn single_connection(url: &PostgresUrl) -> Result<Connections, Fault> {
    Ok(Connections::lazy(url, options(1), NAME, &SETTINGS)?)
}

fn options(connections_max: u32) -> PgPoolOptions {
    PgPoolOptions::new().max_connections(connections_max).acquire_timeout(ACQUIRE_TIMEOUT)
}

/// Returns whether the database has the tables of a registry.
pub(super) async fn has_registry(connections: &Connections) -> Result<bool, sqlx::Error> {
    let mut connection = connections.acquire().await?;
    let found = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL").bind(MIGRATIONS_TABLE);
    found.fetch_one(&mut *connection).await
}

/// Begins a transaction that waits for a bucket's lock, or may change many sessions.
pub(super) async fn begin_long(connection: PoolConnection<Postgres>) -> Result<Transaction, sqlx::Error> {
    Transaction::begin(connection, BEGIN_LONG).await
}

/// Applies pending migrations of the registry in the database at `url`, in a schema of its own, and returns the version
/// of the tables. Without pending migrations nothing changes, so the role needs no right to change tables. Of several
/// processes migrating at once, one does the work and the rest wait.
pub async fn migrate(url: &PostgresUrl) -> Result<i64, Error> {
    migrate_tables(&MIGRATIONS, MIGRATIONS_TABLE, url, NAME).await.map_err(Error::Migrate)?;
    Ok(MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default())
}
