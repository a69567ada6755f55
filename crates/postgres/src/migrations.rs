//! Migrations compiled into the program.
//!
//! `sqlx::migrate!` does the same, but its crate builds every database driver a second time, for the
//! compiler's host.

use std::time::Duration;

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migrate as _, MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::PgPoolOptions;
use tokio::time::sleep;

use crate::{Connections, PostgresUrl};

/// The table in which a [`Migrator`] records the applied migrations, unless the migrator names another table.
pub const MIGRATIONS_TABLE: &str = "_sqlx_migrations";

/// PostgreSQL's error code for a missing right.
const INSUFFICIENT_PRIVILEGE: &str = "42501";

/// PostgreSQL's error code for a lock that did not come within `lock_timeout`.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// Settings of a migration.
///
/// Commits queue behind a migration that waits for the lock of a table, so each wait is short, and is repeated after
/// [`LOCK_PAUSE`]. A statement has no time limit: a role's own limit would cut a long migration off, at every attempt.
/// PostgreSQL ends the migration of a lost machine by keepalives, and of a process that stands still between two statements
/// after a minute: a slow machine may pause for longer than the limits of other statements.
const SETTINGS: [(&str, &str); 7] = [
    // After a wait for a lock, a statement must see the changes made by the lock's previous holder.
    ("default_transaction_isolation", "read committed"),
    ("statement_timeout", "0"),
    ("lock_timeout", "2s"),
    ("idle_in_transaction_session_timeout", "60s"),
    ("tcp_keepalives_idle", "10"),
    ("tcp_keepalives_interval", "5"),
    ("tcp_keepalives_count", "3"),
];

/// The pause of a migration that did not get a lock. Waiting commits go on meanwhile.
const LOCK_PAUSE: Duration = Duration::from_secs(2);

/// The reason why tables are not at the program's version, or cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// Migrations are pending, and the role may not change the tables.
    #[error(
        "the tables lack changes of this version, and the role may not change tables: run `seatkeeper migrate` of \
         this version as the owner of the database"
    )]
    NotOwner(#[source] MigrateError),
    /// The role may not read the version of the tables.
    #[error(
        "the role may not use the tables: grant the rights in docs/operations.md (Nodes that may not change tables), \
         as the owner of the database"
    )]
    NoRights(#[source] MigrateError),
    /// A migration failed, or the tables were migrated by another version.
    #[error(transparent)]
    Failed(#[from] MigrateError),
}

/// Returns a migrator of `files`, pairs of a name and an SQL text. A name begins with the version:
/// `0001_tables.sql`. Versions follow the order of `files`, from 1 without a gap.
pub fn migrator(files: &[(&'static str, &'static str)]) -> Migrator {
    let migration = |(version, (name, text)): (i64, &(&'static str, &'static str))| {
        debug_assert!(name.starts_with(&format!("{version:04}_")), "{name} is migration {version}");
        Migration::new(version, (*name).into(), MigrationType::Simple, text.into_sql_str(), false)
    };
    Migrator::with_migrations((1..).zip(files).map(migration).collect())
}

/// Lists migration files with their texts, for [`migrator`].
#[macro_export]
macro_rules! migration_files {
    ($folder:literal: $($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!($folder, "/", $name)))),+]
    };
}

/// Applies the pending migrations of `migrator`, which records applied migrations in `table` of the database at `url`, over a
/// connection with the application name `name`. Without pending migrations the call only reads, and needs no right to
/// change tables.
///
/// The migrations of concurrent calls run one after another, by an advisory lock. A migration waits without a limit for
/// programs that use the tables, and commits go on meanwhile. A drop of the call ends the wait.
pub async fn migrate_tables(
    migrator: &Migrator,
    table: &str,
    url: &PostgresUrl,
    name: &str,
) -> Result<(), MigrationError> {
    let pool = PgPoolOptions::new().max_connections(1);
    let connections = Connections::lazy(url, pool, name, &SETTINGS).map_err(MigrateError::from)?;
    let migrated = migrate_once_unlocked(migrator, table, &connections).await;
    // After an error the session still holds the advisory lock.
    connections.close().await;
    migrated
}

/// Migrates, and repeats the migration while another program has a lock on a table.
async fn migrate_once_unlocked(
    migrator: &Migrator,
    table: &str,
    connections: &Connections,
) -> Result<(), MigrationError> {
    let mut refusals = 0_u32;
    loop {
        match migrate(migrator, table, connections).await {
            Err(MigrationError::Failed(error)) if has_code(&error, LOCK_NOT_AVAILABLE) => refusals += 1,
            migrated => return migrated,
        }
        if refusals.is_power_of_two() {
            tracing::warn!(
                refusals,
                "a migration waits for tables in use: this process has not started yet, and commits of others go on; let \
                 backups, `seatkeeper audit verify` and other migrations end, or stop this process"
            );
        }
        sleep(LOCK_PAUSE).await;
    }
}

async fn migrate(migrator: &Migrator, table: &str, connections: &Connections) -> Result<(), MigrationError> {
    if !are_pending(migrator, table, connections).await? {
        return Ok(());
    }
    let pool = connections.pool().await.map_err(MigrateError::from)?;
    match migrator.run(pool).await {
        // The owner may have migrated the tables while this role waited for the lock.
        Err(error) if is_denied(&error) => {
            let lacks_changes = are_pending(migrator, table, connections).await?;
            if lacks_changes { Err(MigrationError::NotOwner(error)) } else { Ok(()) }
        }
        migrated => Ok(migrated?),
    }
}

/// Checks that the database lacks migrations of the program. Fails if the database has a migration that the program
/// lacks, or has with another text.
async fn are_pending(
    migrator: &Migrator,
    table: &str,
    connections: &Connections,
) -> Result<bool, MigrationError> {
    let denied = |error| if is_denied(&error) { MigrationError::NoRights(error) } else { error.into() };
    let mut connection = connections.acquire().await.map_err(MigrateError::from)?;
    let found = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL").bind(table);
    let has_table: bool = found.fetch_one(&mut *connection).await.map_err(|error| denied(error.into()))?;
    if !has_table {
        return Ok(true);
    }
    let applied = connection.list_applied_migrations(table).await.map_err(denied)?;
    for found in &applied {
        match migrator.iter().find(|known| known.version == found.version) {
            None => return Err(MigrateError::VersionMissing(found.version).into()),
            Some(known) if known.checksum != found.checksum => {
                return Err(MigrateError::VersionMismatch(found.version).into());
            }
            Some(_) => {}
        }
    }
    Ok(applied.len() < migrator.iter().count())
}

/// Checks that PostgreSQL refused a statement for a missing right.
fn is_denied(error: &MigrateError) -> bool {
    has_code(error, INSUFFICIENT_PRIVILEGE)
}

/// Checks that PostgreSQL refused a statement with this error code.
fn has_code(error: &MigrateError, wanted: &str) -> bool {
    let (MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) = error else {
        return false;
    };
    let code = error.as_database_error().and_then(|refused| refused.code());
    code.is_some_and(|code| code == wanted)
}
