//! Migrations compiled into the program.
//!
//! `sqlx::migrate!` does the same, but its crate builds every database driver a second time, for the
//! compiler's host.

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migrate as _, MigrateError, Migration, MigrationType, Migrator};

use crate::Connections;

/// The table in which a [`Migrator`] records the applied migrations, unless the migrator names another table.
pub const MIGRATIONS_TABLE: &str = "_sqlx_migrations";

/// PostgreSQL's error code for a missing right.
const INSUFFICIENT_PRIVILEGE: &str = "42501";

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

/// Applies the pending migrations of `migrator`, which records applied migrations in `table`, and closes `connections`.
/// Without pending migrations the call only reads, and needs no right to change tables.
///
/// The migrations of concurrent calls run one after another, by an advisory lock.
pub async fn migrate_tables(
    migrator: &Migrator,
    table: &str,
    connections: Connections,
) -> Result<(), MigrationError> {
    let migrated = migrate(migrator, table, &connections).await;
    // After an error the session still holds the advisory lock.
    connections.close().await;
    migrated
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
    let (MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _)) = error else {
        return false;
    };
    let code = error.as_database_error().and_then(|refused| refused.code());
    code.is_some_and(|code| code == INSUFFICIENT_PRIVILEGE)
}
