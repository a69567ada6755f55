//! The ledger as a whole: opened, closed, and in one process's hands where it is a file.

use std::fs::File;
use std::sync::Arc;

use crate::database::{self, Access, Pool, Tx};
use crate::{Error, Location};

/// Where the ledger is and what it may use.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The database.
    pub location: Location,
    /// How many statements may read at the same time, at least 1. As many transactions may write at the same
    /// time in PostgreSQL; in SQLite it is one.
    pub connections_max: u32,
}

impl Settings {
    /// The usual settings for this database.
    pub fn new(location: impl Into<Location>) -> Self {
        Self { location: location.into(), connections_max: 4 }
    }
}

/// The system of record. A clone is another handle on the same one.
#[derive(Clone, Debug)]
pub struct Ledger {
    writer: Pool,
    readers: Pool,
    // Held for as long as any handle lives; only where a process may write to a file.
    _lock: Option<Arc<File>>,
}

impl Ledger {
    /// Opens the ledger for reading and writing, and brings the tables to this program's version. In a
    /// directory it is made (mode 0700) unless it is there, and taken for this process. In PostgreSQL any
    /// number of processes share it; one of them at a time changes the tables.
    pub async fn open(settings: Settings) -> Result<Self, Error> {
        let connections_max = settings.connections_max.max(1);
        match &settings.location {
            Location::Directory(dir) => {
                let lock = database::own(dir).await?;
                let writer = database::open_sqlite_writer(dir).await?;
                let readers = database::open_sqlite_readers(dir, connections_max).await?;
                Ok(Self { writer, readers, _lock: Some(Arc::new(lock)) })
            }
            Location::Postgres(url) => {
                database::migrate_postgres(url).await?;
                let writer = database::open_postgres(url, connections_max, Access::Write).await?;
                let readers = database::open_postgres(url, connections_max, Access::Read).await?;
                Ok(Self { writer, readers, _lock: None })
            }
        }
    }

    /// Opens the ledger for reading alone, also beside processes that write to it. Every write on this
    /// handle fails.
    pub async fn open_read_only(location: impl Into<Location>) -> Result<Self, Error> {
        let readers = match &location.into() {
            Location::Directory(dir) => database::open_sqlite_readers(dir, 1).await?,
            Location::Postgres(url) => database::open_postgres(url, 1, Access::Read).await?,
        };
        let (found, wanted) = (readers.schema_version().await?, readers.newest_version());
        let ledger = Self { writer: readers.clone(), readers, _lock: None };
        if found == wanted { Ok(ledger) } else { Err(Error::SchemaVersion { found, wanted }) }
    }

    /// Brings the tables to this program's version, and returns that.
    pub async fn migrate(location: impl Into<Location>) -> Result<i64, Error> {
        let ledger = Self::open(Settings::new(location)).await?;
        ledger.close().await;
        Ok(ledger.writer.newest_version())
    }

    /// Another handle on it. What is written through it goes, in PostgreSQL, over connections that no other handle uses:
    /// they serve best in the runtime that first asks for them.
    pub fn apart(&self) -> Self {
        Self { writer: self.writer.apart(), ..self.clone() }
    }

    /// How many transactions can write at the same time.
    pub fn commits_at_once(&self) -> usize {
        self.writer.writes_at_once() as usize
    }

    /// Closes all connections; every call that follows, on any handle, fails.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// Whether the ledger answers.
    pub async fn ping(&self) -> Result<(), Error> {
        self.readers.query("SELECT 1").execute().await?;
        Ok(())
    }

    pub(crate) fn readers(&self) -> &Pool {
        &self.readers
    }

    pub(crate) fn writer(&self) -> &Pool {
        &self.writer
    }

    /// Begins the only kind of transaction that may write.
    pub(crate) async fn write(&self) -> Result<Tx, Error> {
        self.writer.begin().await
    }
}
