//! Where a ledger is.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;

/// The database that holds a ledger.
#[derive(Clone, Debug)]
pub enum Location {
    /// SQLite, in a file in this directory. One process owns it at a time.
    Directory(PathBuf),
    /// PostgreSQL, which any number of processes share.
    Postgres(PostgresUrl),
}

/// A database of a PostgreSQL server: `postgres://user:password@host:port/database?sslmode=…`. What it leaves
/// out comes from PostgreSQL's variables of the environment and `.pgpass`. It never shows the password.
#[derive(Clone)]
pub struct PostgresUrl(pub(crate) Box<PgConnectOptions>);

/// A text that is no URL of a PostgreSQL database, and why.
#[derive(Debug, thiserror::Error)]
#[error("not a URL of a PostgreSQL database: {0}")]
pub struct NotAPostgresUrl(String);

impl FromStr for PostgresUrl {
    type Err = NotAPostgresUrl;
    fn from_str(text: &str) -> Result<Self, NotAPostgresUrl> {
        if !["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
            return Err(NotAPostgresUrl("it starts with postgres://".to_owned()));
        }
        text.parse()
            .map(|options| Self(Box::new(options)))
            .map_err(|error: sqlx::Error| NotAPostgresUrl(error.to_string()))
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(dir) => fmt::Display::fmt(&dir.display(), f),
            Self::Postgres(url) => fmt::Display::fmt(url, f),
        }
    }
}

impl fmt::Display for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (user, host, port) = (self.0.get_username(), self.0.get_host(), self.0.get_port());
        let database = self.0.get_database().unwrap_or(user);
        write!(f, "postgres://{user}@{host}:{port}/{database}")
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Location {
    fn from(dir: &P) -> Self {
        Self::Directory(dir.as_ref().to_owned())
    }
}

impl From<PostgresUrl> for Location {
    fn from(url: PostgresUrl) -> Self {
        Self::Postgres(url)
    }
}
