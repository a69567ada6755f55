//! Everything specific to PostgreSQL: connections, timeouts, migrations, and classifying errors.

use std::io;
use std::sync::LazyLock;
use std::time::Duration;

use seatkeeper_postgres::{
    Connections, MIGRATIONS_TABLE, PostgresUrl, Transaction, migrate_tables, migration_files, migrator,
};
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgDatabaseError, PgPoolOptions, PgSeverity};
use sqlx::{PgConnection, Row as _};
use tokio::time::timeout;

use super::{Access, Pool};
use crate::Error;

pub(super) static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&migration_files!("../../migrations/postgres": "0001_ledger.sql", "0002_apply_events.sql"))
});

/// The `application_name` shown in PostgreSQL's views.
const NAME: &str = "seatkeeper";

/// The time a caller waits for a connection. After the timeout the ledger counts as unavailable.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// The time limit of a statement. A network may lose a statement without an error, so the caller must not
/// wait for ever.
pub(super) const STATEMENT_TIMEOUT: Duration = Duration::from_secs(15);

/// The time limit of the first row of a statement that may read and sort millions of rows before the first row.
pub(super) const LONG_STATEMENT_TIMEOUT: Duration = Duration::from_secs(900);

/// Settings of every connection. A stalled process or machine loses its locks after some seconds, and every
/// wait for a lock is short.
const SESSION: [(&str, &str); 6] = [
    // After a wait for a lock, a statement must see the changes made by the lock's previous holder.
    ("default_transaction_isolation", "read committed"),
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "3s"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
];
/// Settings of write connections. The caller has given up by the statement timeout. Read connections have no
/// statement timeout, because a large read may take longer.
///
/// Writes must follow indexes from a few rows, as SQLite always does. With stale statistics of a small table,
/// the planner would prefer a sequential scan at each commit.
const WRITING: [(&str, &str); 7] = [
    ("statement_timeout", "15s"),
    ("enable_seqscan", "off"),
    ("enable_material", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
];
const READING: [(&str, &str); 2] = [("default_transaction_read_only", "on"), ("statement_timeout", "0")];

/// Turns `synchronous_commit` on where the server has turned it off: a committed transaction is on disk when
/// the answer comes.
const DURABLE: &str = "SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') = 'off'";

/// Tells whether the settings of a connection have reached the server, by a setting in [`SESSION`], and tells the encoding
/// of the database.
const HAS_SETTINGS: &str = "SELECT current_setting('idle_in_transaction_session_timeout') = '3s', \
    current_setting('server_encoding')";

/// The encoding of a database that can store every name.
const ENCODING: &str = "UTF8";

/// The error code of a pooler that refuses the settings of a connection.
const PROTOCOL_VIOLATION: &str = "08P01";

/// Opens at most `connections_max` connections to a database.
pub(crate) async fn open(url: &PostgresUrl, connections_max: u32, access: Access) -> Result<Pool, Error> {
    check_settings(url).await?;
    let of_access = match access {
        Access::Read => &READING[..],
        Access::Write => &WRITING[..],
    };
    let pool =
        PgPoolOptions::new().max_connections(connections_max).acquire_timeout(ACQUIRE_TIMEOUT).after_connect(
            |connection, _| Box::pin(async { sqlx::query(DURABLE).execute(connection).await.map(|_| ()) }),
        );
    let connections = Connections::lazy(url, pool, NAME, &[&SESSION, of_access].concat())?;
    // An unreachable database is an error at once.
    connections.acquire().await?;
    Ok(Pool::Postgres(connections))
}

/// Checks that the settings of a connection reach PostgreSQL, and that the database stores every text. The check prepares no
/// statement, which a pooler could mistake for a statement of another client.
async fn check_settings(url: &PostgresUrl) -> Result<(), Error> {
    let alone = Connections::lazy(url, PgPoolOptions::new().max_connections(1), NAME, &SESSION)?;
    let mut connection = alone.acquire_or_explain().await.map_err(|error| {
        let code = error.as_database_error().and_then(|refused| refused.code());
        if code.is_some_and(|code| code == PROTOCOL_VIOLATION) { Error::BehindPooler } else { error.into() }
    })?;
    let row = sqlx::raw_sql(HAS_SETTINGS).fetch_one(&mut *connection).await?;
    drop(connection);
    alone.close().await;
    if !row.try_get::<bool, _>(0)? {
        return Err(Error::BehindPooler);
    }
    let found: String = row.try_get(1)?;
    if found == ENCODING { Ok(()) } else { Err(Error::Encoding { found }) }
}

/// Applies pending migrations, without a time limit for a statement. Of several processes migrating at once, a single
/// process does the work and the rest wait. Without pending migrations nothing changes.
pub(crate) async fn migrate(url: &PostgresUrl) -> Result<(), Error> {
    check_settings(url).await?;
    migrate_tables(&MIGRATIONS, MIGRATIONS_TABLE, url, NAME).await.map_err(Error::Migrate)
}

/// Waits for an answer of the server for at most [`STATEMENT_TIMEOUT`].
pub(super) async fn within<T>(
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    within_limit(STATEMENT_TIMEOUT, answer).await
}

/// Waits for an answer of the server for at most `limit`.
pub(super) async fn within_limit<T>(
    limit: Duration,
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let late = |_| Err(sqlx::Error::Io(io::Error::from(io::ErrorKind::TimedOut)));
    timeout(limit, answer).await.unwrap_or_else(late)
}

/// A transaction with time limits on `BEGIN` and `COMMIT`.
pub(crate) struct PgTx(Transaction);

impl PgTx {
    pub(super) async fn begin(on: &Connections, statement: &'static str) -> Result<Self, sqlx::Error> {
        let connection = on.acquire().await?;
        Ok(Self(within(Transaction::begin(connection, statement)).await?))
    }

    pub(super) fn connection(&mut self) -> &mut PgConnection {
        &mut self.0
    }

    pub(super) async fn commit(self) -> Result<(), sqlx::Error> {
        within(self.0.commit()).await
    }
}

/// Begins a read transaction on one snapshot.
pub(super) const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Checks that a refusal is transient, so that a later retry may succeed.
pub(super) fn is_passing(refused: &PgDatabaseError) -> bool {
    /// Serialization failure, deadlock, lock timeout, cancelled statement, server shutting down or starting,
    /// server read-only after a failover.
    const CODES: [&str; 8] = ["40001", "40P01", "55P03", "57014", "57P01", "57P02", "57P03", "25006"];
    /// Broken connection, insufficient resources, system error such as a disk failure.
    const CLASSES: [&str; 3] = ["08", "53", "58"];
    // After a fatal error the connection is closed, and a new connection may succeed.
    let ended = matches!(refused.severity(), PgSeverity::Fatal | PgSeverity::Panic);
    let code = refused.code();
    ended || CODES.contains(&code) || CLASSES.iter().any(|class| code.starts_with(class))
}
