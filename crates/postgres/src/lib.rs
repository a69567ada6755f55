//! The way to a PostgreSQL: where it is, the password of its user, and connections that go on when that is changed.
#![forbid(unsafe_code)]

mod connections;
mod password;
mod url;

pub use connections::Connections;
pub use url::{NotAPostgresUrl, PostgresUrl};
