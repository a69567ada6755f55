//! Access to PostgreSQL: URLs, passwords in files, connections that survive a change of the password,
//! migrations, and transactions that are safe to drop.
#![forbid(unsafe_code)]

mod connections;
mod kept;
mod migrations;
mod password;
mod transaction;
mod url;

pub use connections::Connections;
pub use migrations::{MIGRATIONS_TABLE, MigrationError, migrate_tables, migrator};
pub use transaction::Transaction;
pub use url::{NotAPostgresUrl, PostgresUrl};
