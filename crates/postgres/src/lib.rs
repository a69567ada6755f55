//! The way to a PostgreSQL: where it is, the password of its user, connections that go on when that is changed, and transactions
//! that may be given up.
#![forbid(unsafe_code)]

mod connections;
mod migrations;
mod password;
mod transaction;
mod url;

pub use connections::Connections;
pub use migrations::migrator;
pub use transaction::Transaction;
pub use url::{NotAPostgresUrl, PostgresUrl};
