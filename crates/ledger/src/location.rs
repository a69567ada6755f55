//! The location of a ledger's database.

use std::fmt;
use std::path::{Path, PathBuf};

use seatkeeper_postgres::PostgresUrl;

/// The database of a ledger.
#[derive(Clone, Debug)]
pub enum Location {
    /// SQLite, in a file in the directory. One process owns the directory at a time.
    Directory(PathBuf),
    /// PostgreSQL, shared by any number of processes.
    Postgres(PostgresUrl),
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(dir) => fmt::Display::fmt(&dir.display(), f),
            Self::Postgres(url) => fmt::Display::fmt(url, f),
        }
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
