//! How the registry is connected with its database.

use std::str::FromStr as _;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{Connection as _, PgConnection, PgPool, Postgres, Transaction};

use super::fault::Fault;

/// How long a caller waits for a connection.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);

/// How a transaction begins in which a turn on a bucket is waited for, or many sessions may change.
const BEGIN_LONG: &str = "BEGIN; SET LOCAL statement_timeout = '30s'";

/// A connection that was idle for longer is asked whether it still is one.
const IDLE_UNASKED_MAX: Duration = Duration::from_secs(1);

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
pub(super) fn pool(url: &str, connections_max: u32) -> Result<PgPool, Fault> {
    let options = PgConnectOptions::from_str(url)?.application_name("seatkeeper registry").options(SETTINGS);
    let pool = PgPoolOptions::new()
        .max_connections(connections_max)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .test_before_acquire(false)
        .before_acquire(|connection, meta| {
            Box::pin(async move {
                if meta.idle_for > IDLE_UNASKED_MAX {
                    connection.ping().await?;
                }
                Ok(true)
            })
        });
    Ok(pool.connect_lazy_with(options))
}

/// Begins a transaction in which a turn on a bucket is waited for, or many sessions may change.
pub(super) async fn begin_long(
    connection: &mut PgConnection,
) -> Result<Transaction<'_, Postgres>, sqlx::Error> {
    connection.begin_with(BEGIN_LONG).await
}

/// Brings the tables up to date, in a schema of their own.
pub(super) async fn migrate(pool: &PgPool) -> Result<(), sqlx::migrate::MigrateError> {
    let mut migrations: Migrator = sqlx::migrate!("./migrations");
    migrations.create_schema("registry");
    migrations.dangerous_set_table_name("registry.migrations");
    migrations.run(pool).await
}
