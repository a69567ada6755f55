//! The ledger as a whole: opened, owned by one process, closed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::Error;
use crate::sqlite::{self, MIGRATIONS, Pool, Tx};

/// Where the ledger is and what it may use.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The directory that holds it. One process owns it at a time.
    pub data_dir: PathBuf,
    /// How many statements may read at the same time, at least 1.
    pub readers_max: u32,
}

impl Settings {
    /// The usual settings for this directory.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self { data_dir: data_dir.into(), readers_max: 4 }
    }
}

/// The system of record. A clone is another handle on the same one.
#[derive(Clone, Debug)]
pub struct Ledger {
    writer: Pool,
    readers: Pool,
    // Held for as long as any handle lives; none where this ledger only reads.
    _lock: Option<Arc<File>>,
}

impl Ledger {
    /// Opens the ledger for reading and writing: makes the directory (mode 0700) unless it is there,
    /// takes it for this process, and brings the tables to this program's version.
    pub async fn open(settings: Settings) -> Result<Self, Error> {
        let lock = sqlite::own(&settings.data_dir)?;
        let writer = sqlite::open_writer(&settings.data_dir).await?;
        MIGRATIONS.run(&writer).await.map_err(Error::Migrate)?;
        let readers = sqlite::open_readers(&settings.data_dir, settings.readers_max.max(1)).await?;
        Ok(Self { writer, readers, _lock: Some(Arc::new(lock)) })
    }

    /// Opens the ledger for reading alone, also beside the process that owns it. Every write on this
    /// handle fails.
    pub async fn open_read_only(data_dir: &Path) -> Result<Self, Error> {
        let readers = sqlite::open_readers(data_dir, 1).await?;
        let ledger = Self { writer: readers.clone(), readers, _lock: None };
        let (found, wanted) = (ledger.schema_version().await?, newest_version());
        if found == wanted { Ok(ledger) } else { Err(Error::SchemaVersion { found, wanted }) }
    }

    /// Brings the tables in `data_dir` to this program's version, and returns that.
    pub async fn migrate(data_dir: &Path) -> Result<i64, Error> {
        let ledger = Self::open(Settings::new(data_dir)).await?;
        ledger.close().await;
        Ok(newest_version())
    }

    /// Closes the files; every call that follows, on any handle, fails.
    pub async fn close(&self) {
        self.readers.close().await;
        self.writer.close().await;
    }

    /// Whether the ledger answers.
    pub async fn ping(&self) -> Result<(), Error> {
        sqlx::query("SELECT 1").execute(&self.readers).await?;
        Ok(())
    }

    pub(crate) fn readers(&self) -> &Pool {
        &self.readers
    }

    /// Begins the only kind of transaction that may write.
    pub(crate) async fn write(&self) -> Result<Tx, Error> {
        sqlite::begin_write(&self.writer).await
    }

    async fn schema_version(&self) -> Result<i64, Error> {
        let versions = "SELECT COUNT(*) FROM sqlite_master WHERE name = '_sqlx_migrations'";
        if sqlx::query_scalar::<_, i64>(versions).fetch_one(&self.readers).await? == 0 {
            return Ok(0);
        }
        let newest = "SELECT COALESCE(MAX(version), 0) FROM _sqlx_migrations";
        Ok(sqlx::query_scalar(newest).fetch_one(&self.readers).await?)
    }
}

fn newest_version() -> i64 {
    MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default()
}
