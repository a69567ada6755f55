//! Everything specific to SQLite: locking the directory, opening the file, beginning a write, and classifying
//! errors.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use seatkeeper_postgres::{migration_files, migrator};
use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Connection as _, Sqlite, SqlitePool, Transaction};
use tokio::time::sleep;

use super::Pool;
use crate::Error;

pub(super) static MIGRATIONS: LazyLock<Migrator> =
    LazyLock::new(|| migrator(&migration_files!("../../migrations/sqlite": "0001_ledger.sql")));

/// The time a statement waits for another process's write, such as a backup.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The time a caller waits for a connection. After the timeout the ledger counts as unavailable.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Page cache of the writer. A large cache avoids rereading random index pages of a large ledger.
const WRITER_CACHE_KIB: u32 = 65_536;
/// Page cache of each reader.
const READER_CACHE_KIB: u32 = 16_384;
/// Rows prefetched by a reader. Handing over each row between threads would cost more than reading the row.
const READER_ROWS_AHEAD: usize = 512;
/// Pages in the write-ahead log before a checkpoint. Rare checkpoints move a page touched by many commits
/// only once.
const CHECKPOINT_PAGES: u32 = 8_192;

/// The primary result code of a write to a read-only database.
const READONLY: i32 = 8;

const DATABASE_FILE: &str = "ledger.db";
const LOCK_FILE: &str = "ledger.lock";

/// The time a killed process may take to exit and release the lock on its directory.
const GONE_WITHIN: Duration = Duration::from_secs(3);
const GONE_PAUSE: Duration = Duration::from_millis(20);

/// Creates the data directory with mode 0700 unless the directory exists, and takes the directory's lock.
/// Waits up to [`GONE_WITHIN`] for a previous owner to exit.
pub(crate) async fn own(data_dir: &Path) -> Result<File, Error> {
    let unusable = |source| Error::DataDir { path: data_dir.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(data_dir).map_err(unusable)?;
    let lock = private_file(&data_dir.join(LOCK_FILE)).map_err(unusable)?;
    let started = Instant::now();
    loop {
        match lock.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if started.elapsed() < GONE_WITHIN => sleep(GONE_PAUSE).await,
            Err(TryLockError::WouldBlock) => return Err(Error::Locked { path: data_dir.to_owned() }),
            Err(TryLockError::Error(source)) => return Err(unusable(source)),
        }
    }
    // SQLite copies the permissions of the database file to the files beside it.
    private_file(&data_dir.join(DATABASE_FILE)).map_err(unusable)?;
    Ok(lock)
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}

/// Opens the only write connection.
pub(crate) async fn open_writer(data_dir: &Path) -> Result<Pool, Error> {
    let options = SqliteConnectOptions::new()
        .filename(data_dir.join(DATABASE_FILE))
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        .pragma("cache_size", format!("-{WRITER_CACHE_KIB}"))
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES.to_string())
        // Temporary tables in memory save creating and deleting a file for each batch.
        .pragma("temp_store", "MEMORY");
    let pool = pool_options().max_connections(1).idle_timeout(None).max_lifetime(None);
    Ok(Pool::Sqlite(pool.connect_with(options).await?))
}

/// Migrates the tables over the write connection.
pub(crate) async fn migrate(writer: &Pool) -> Result<(), Error> {
    let Pool::Sqlite(pool) = writer else { return Ok(()) };
    MIGRATIONS.run(pool).await.map_err(|error| Error::Migrate(error.into()))
}

/// Opens read-only connections, even beside a process writing to the file.
pub(crate) async fn open_readers(data_dir: &Path, connections_max: u32) -> Result<Pool, Error> {
    let path = data_dir.join(DATABASE_FILE);
    if !path.exists() {
        let source = io::Error::new(io::ErrorKind::NotFound, "there is no ledger in it");
        return Err(Error::DataDir { path: data_dir.to_owned(), source });
    }
    let options = SqliteConnectOptions::new()
        .filename(path)
        .read_only(true)
        .busy_timeout(BUSY_TIMEOUT)
        .row_buffer_size(READER_ROWS_AHEAD)
        .pragma("cache_size", format!("-{READER_CACHE_KIB}"));
    Ok(Pool::Sqlite(pool_options().max_connections(connections_max).connect_with(options).await?))
}

/// After a disk failure SQLite rolls back by itself, but the connection still believes to be in a transaction: a write would
/// fail, and a read would be of an old snapshot. Such a connection is discarded.
fn pool_options() -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .acquire_timeout(ACQUIRE_TIMEOUT)
        .before_acquire(|connection, _| Box::pin(async { Ok(!connection.is_in_transaction()) }))
}

/// Begins a write transaction and takes the write lock at once. A later upgrade from reading to writing could
/// fail.
pub(super) async fn begin_write(writer: &SqlitePool) -> Result<Transaction<'static, Sqlite>, Error> {
    let begun = writer.begin_with("BEGIN IMMEDIATE").await;
    if begun.as_ref().is_err_and(is_read_only) {
        // SQLite opens a file for reading alone while its file system is read-only, and the connection never writes again.
        writer.acquire().await?.close().await?;
    }
    Ok(begun?)
}

fn is_read_only(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.and_then(|code| primary(&code)) == Some(READONLY)
}

/// Checks that a result code is transient, so that a later retry may succeed.
pub(super) fn is_passing(code: &str) -> bool {
    /// BUSY, LOCKED, NOMEM, READONLY, IOERR, CORRUPT, FULL, CANTOPEN. A page counts as corrupt if the disk cannot read the page.
    const PASSING: [i32; 8] = [5, 6, 7, READONLY, 10, 11, 13, 14];
    primary(code).is_some_and(|code| PASSING.contains(&code))
}

/// Returns the primary code of a result code.
fn primary(code: &str) -> Option<i32> {
    code.parse::<i32>().ok().map(|code| code & 0xff)
}
