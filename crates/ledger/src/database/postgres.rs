//! All that is PostgreSQL's alone: how it is connected to, and how an error reads.

use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgDatabaseError, PgPoolOptions, PgSeverity};

use super::{Access, Pool};
use crate::{Error, PostgresUrl};

pub(super) static MIGRATIONS: Migrator = sqlx::migrate!("migrations/postgres");

/// How long a caller waits for a connection before the ledger counts as unavailable.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// What every connection asks of the server. Whoever holds locks and says nothing, because its process or
/// its machine stands still, loses them after some seconds; and nobody waits for a lock any longer.
const SESSION: [(&str, &str); 5] = [
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "3s"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
];

/// What was committed is on disk when the answer comes, however the server is configured otherwise.
const DURABLE: &str = "SELECT set_config('synchronous_commit', 'on', false) \
    WHERE current_setting('synchronous_commit') = 'off'";

/// Connections to a database, at most `connections_max` at a time.
pub(crate) async fn open(url: &PostgresUrl, connections_max: u32, access: Access) -> Result<Pool, Error> {
    let options = PgConnectOptions::clone(&url.0).application_name("seatkeeper").options(SESSION);
    let options = match access {
        Access::Read => options.options([("default_transaction_read_only", "on")]),
        Access::Write => options,
    };
    let pool =
        PgPoolOptions::new().max_connections(connections_max).acquire_timeout(ACQUIRE_TIMEOUT).after_connect(
            |connection, _| Box::pin(async { sqlx::query(DURABLE).execute(connection).await.map(|_| ()) }),
        );
    Ok(Pool::Postgres(pool.connect_with(options).await?))
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
