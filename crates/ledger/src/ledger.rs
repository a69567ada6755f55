//! Opens and closes the ledger. Over SQLite one process owns the data directory, by a file lock.

use std::fs::File;
use std::sync::Arc;

use crate::database::{self, Access, Pool, Tx};
use crate::{Error, Location};

/// The database of a ledger and the number of connections.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The database.
    pub location: Location,
    /// The number of statements reading at the same time, at least 1. PostgreSQL also allows as many
    /// concurrent write transactions; SQLite allows 1.
    pub connections_max: u32,
}

impl Settings {
    /// Returns the usual settings for a database: four connections.
    pub fn new(location: impl Into<Location>) -> Self {
        Self { location: location.into(), connections_max: 4 }
    }
}

/// The system of record. Clones are handles to one ledger.
#[derive(Clone, Debug)]
pub struct Ledger {
    writer: Pool,
    readers: Pool,
    location: Arc<Location>,
    // The lock on the data directory, held while any handle lives. `None` over PostgreSQL and for read-only
    // handles.
    _lock: Option<Arc<File>>,
}

impl Ledger {
    /// Opens the ledger for reading and writing, and migrates the tables to the program's version.
    ///
    /// A missing data directory is created with mode 0700, and the process takes the directory's lock. Over
    /// PostgreSQL any number of processes share the ledger, and the migrations of concurrent processes run
    /// one after another. Current tables are left alone, so the role needs no right to change tables.
    pub async fn open(settings: Settings) -> Result<Self, Error> {
        let connections_max = settings.connections_max.max(1);
        match &settings.location {
            Location::Directory(dir) => {
                let lock = database::own(dir).await?;
                let writer = database::open_sqlite_writer(dir).await?;
                database::migrate_sqlite(&writer).await?;
                let readers = database::open_sqlite_readers(dir, connections_max).await?;
                Ok(Self {
                    writer,
                    readers,
                    location: Arc::new(settings.location),
                    _lock: Some(Arc::new(lock)),
                })
            }
            Location::Postgres(url) => {
                database::migrate_postgres(url).await?;
                let writer = database::open_postgres(url, connections_max, Access::Write).await?;
                let readers = database::open_postgres(url, connections_max, Access::Read).await?;
                Ok(Self { writer, readers, location: Arc::new(settings.location), _lock: None })
            }
        }
    }

    /// Opens an existing ledger of the program's version for reading and writing, like [`open`](Self::open). Creates and
    /// migrates nothing: `Err(DataDir)` without a ledger in the data directory, and `Err(SchemaVersion)` for tables of
    /// another version.
    pub async fn open_existing(settings: Settings) -> Result<Self, Error> {
        let connections_max = settings.connections_max.max(1);
        let (writer, readers, lock) = match &settings.location {
            Location::Directory(dir) => {
                // The readers come first: they refuse a directory without a ledger.
                let readers = database::open_sqlite_readers(dir, connections_max).await?;
                let lock = database::own(dir).await?;
                (database::open_sqlite_writer(dir).await?, readers, Some(Arc::new(lock)))
            }
            Location::Postgres(url) => {
                let writer = database::open_postgres(url, connections_max, Access::Write).await?;
                (writer, database::open_postgres(url, connections_max, Access::Read).await?, None)
            }
        };
        let location = Arc::new(settings.location);
        Self { writer, readers, location, _lock: lock }.of_this_version().await
    }

    /// Opens the ledger for reading, even beside processes writing to the ledger. Every write on the handle
    /// fails.
    pub async fn open_read_only(location: impl Into<Location>) -> Result<Self, Error> {
        let location = Arc::new(location.into());
        let readers = match &*location {
            Location::Directory(dir) => database::open_sqlite_readers(dir, 1).await?,
            Location::Postgres(url) => database::open_postgres(url, 1, Access::Read).await?,
        };
        Self { writer: readers.clone(), readers, location, _lock: None }.of_this_version().await
    }

    /// Returns the ledger, or `Err(SchemaVersion)` if the tables' version is not the program's.
    async fn of_this_version(self) -> Result<Self, Error> {
        let (found, wanted) = (self.readers.schema_version().await?, self.readers.newest_version());
        if found == wanted { Ok(self) } else { Err(Error::SchemaVersion { found, wanted }) }
    }

    /// Migrates the tables to the program's version and returns the version.
    pub async fn migrate(location: impl Into<Location>) -> Result<i64, Error> {
        let ledger = Self::open(Settings::new(location)).await?;
        ledger.close().await;
        Ok(ledger.writer.newest_version())
    }

    /// Returns a handle with a separate pool of write connections over PostgreSQL, and the shared writer over
    /// SQLite. Writers with a handle of their own never wait for the connections of this handle.
    pub fn apart(&self) -> Self {
        Self { writer: self.writer.apart(), ..self.clone() }
    }

    /// Returns whether the database commits two transactions at once. SQLite has a single writer.
    pub fn commits_at_once(&self) -> bool {
        matches!(self.writer, Pool::Postgres(_))
    }

    /// Closes all connections. Later calls on any handle fail.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// Returns the database of the ledger.
    pub fn location(&self) -> &Location {
        &self.location
    }

    /// Checks that the ledger answers a query.
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

    /// Begins a write transaction. Every write of the ledger begins here.
    pub(crate) async fn write(&self) -> Result<Tx, Error> {
        self.writer.begin().await
    }
}
