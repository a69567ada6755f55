//! Migrations compiled into the program.
//!
//! `sqlx::migrate!` does the same, but its crate builds every database driver a second time, for the
//! compiler's host.

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migration, MigrationType, Migrator};

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
