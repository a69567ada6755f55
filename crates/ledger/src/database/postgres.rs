//! All that is PostgreSQL's alone: how it is connected to, and how an error reads.

use std::io;
use std::sync::LazyLock;
use std::time::Duration;

use seatkeeper_postgres::{Connections, PostgresUrl, Transaction, migration_files, migrator};
use sqlx::PgConnection;
use sqlx::migrate::Migrator;
use sqlx::postgres::{PgDatabaseError, PgPoolOptions, PgSeverity};
use tokio::time::timeout;

use super::{Access, Pool};
use crate::Error;

pub(super) static MIGRATIONS: LazyLock<Migrator> = LazyLock::new(|| {
    migrator(&migration_files!("../../migrations/postgres": "0001_ledger.sql", "0002_live_sessions.sql"))
});

/// Replaces `apply_events` by this program's definition. The lock keeps processes that start together from replacing the
/// function at the same time, which PostgreSQL refuses.
const DEFINE_APPLY_EVENTS: &str = concat!(
    "BEGIN; SELECT pg_advisory_xact_lock(hashtext('seatkeeper.apply_events'));",
    include_str!("../../sql/define_apply_events.sql"),
    "COMMIT;"
);

/// What connections are called in what the server shows of them.
const NAME: &str = "seatkeeper";

/// How long a caller waits for a connection before the ledger counts as unavailable.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a statement may take before it counts as unanswered: a network may lose what it was given, and
/// nobody would ever tell.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(15);

/// What every connection asks of the server. Whoever holds locks and says nothing, because its process or
/// its machine stands still, loses them after some seconds; and nobody waits for a lock for long.
const SESSION: [(&str, &str); 6] = [
    // Who has waited for a lock must see what he waited for.
    ("default_transaction_isolation", "read committed"),
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "3s"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
];
/// Those that only write have been given up by then; who reads much at once may take its time.
///
/// Whoever writes goes from the few rows he has to others by an index, as SQLite always does. A planner that has not
/// looked at a table since it was small would rather read the whole of it, at each commit.
const WRITING: [(&str, &str); 7] = [
    ("statement_timeout", "15s"),
    ("enable_seqscan", "off"),
    ("enable_material", "off"),
    ("enable_bitmapscan", "off"),
    ("enable_hashjoin", "off"),
    ("enable_mergejoin", "off"),
    ("jit", "off"),
];
const READING: [(&str, &str); 1] = [("default_transaction_read_only", "on")];

/// What was committed is on disk when the answer comes, however the server is configured otherwise.
const DURABLE: &str = "SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') = 'off'";

/// Connections to a database, at most `connections_max` at a time.
pub(crate) async fn open(url: &PostgresUrl, connections_max: u32, access: Access) -> Result<Pool, Error> {
    let of_access = match access {
        Access::Read => &READING[..],
        Access::Write => &WRITING[..],
    };
    let pool =
        PgPoolOptions::new().max_connections(connections_max).acquire_timeout(ACQUIRE_TIMEOUT).after_connect(
            |connection, _| Box::pin(async { sqlx::query(DURABLE).execute(connection).await.map(|_| ()) }),
        );
    let connections = Connections::lazy(url, pool, NAME, &[&SESSION, of_access].concat())?;
    // What cannot be reached at all is told at once.
    connections.acquire().await?;
    Ok(Pool::Postgres(connections))
}

/// Brings tables and functions to this program's version, without a time limit. Of several processes that migrate at once
/// one does the work, and the others wait.
pub(crate) async fn migrate(url: &PostgresUrl) -> Result<(), Error> {
    // Who has waited for a lock must see what he waited for.
    let settings = [("default_transaction_isolation", "read committed")];
    let alone = Connections::lazy(url, PgPoolOptions::new().max_connections(1), NAME, &settings)?;
    let pool = alone.pool().await?;
    MIGRATIONS.run(pool).await.map_err(Error::Migrate)?;
    sqlx::raw_sql(DEFINE_APPLY_EVENTS).execute(pool).await?;
    alone.close().await;
    Ok(())
}

/// Waits for an answer of the server, but not for ever.
pub(super) async fn within<T>(
    answer: impl Future<Output = Result<T, sqlx::Error>>,
) -> Result<T, sqlx::Error> {
    let late = |_| Err(sqlx::Error::Io(io::Error::from(io::ErrorKind::TimedOut)));
    timeout(STATEMENT_TIMEOUT, answer).await.unwrap_or_else(late)
}

/// A transaction, whose begin and end are not waited for for ever.
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

/// Begins a transaction that reads all as of one instant.
pub(super) const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Whether the server may answer later what it refused so.
pub(super) fn is_passing(refused: &PgDatabaseError) -> bool {
    /// A deadlock or a conflict with another transaction, a lock or an answer that took too long, a server
    /// that shuts down or starts, one that only reads because another has taken over.
    const CODES: [&str; 8] = ["40001", "40P01", "55P03", "57014", "57P01", "57P02", "57P03", "25006"];
    /// A connection that broke, a lack of resources, trouble with the disk.
    const CLASSES: [&str; 3] = ["08", "53", "58"];
    // After these the connection is gone, and another one may fare better.
    let ended = matches!(refused.severity(), PgSeverity::Fatal | PgSeverity::Panic);
    let code = refused.code();
    ended || CODES.contains(&code) || CLASSES.iter().any(|class| code.starts_with(class))
}
