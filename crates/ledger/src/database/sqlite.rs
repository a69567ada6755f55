//! All that is SQLite's alone: how the file is opened and owned, how a write begins, and how an
//! error reads.

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

/// How long a statement waits for another process's write, such as a backup.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a caller waits for a connection before the ledger counts as unavailable.
const ACQUIRE_TIMEOUT: Duration = Duration::from_secs(5);
/// Page cache of the writer: random index pages of a large ledger should not be read again and again.
const WRITER_CACHE_KIB: u32 = 65_536;
/// Page cache of each reader.
const READER_CACHE_KIB: u32 = 16_384;
/// Rows that a reader prepares ahead of who takes them: a hand-over from thread to thread for each row
/// would cost more than reading it.
const READER_ROWS_AHEAD: usize = 512;
/// Pages in the write-ahead log at which they are moved to the file: rarely enough that a page which
/// many commits touch is moved once.
const CHECKPOINT_PAGES: u32 = 8_192;

const DATABASE_FILE: &str = "ledger.db";
const LOCK_FILE: &str = "ledger.lock";

/// How long a process that was killed may take to be gone, and to let its directory go.
const GONE_WITHIN: Duration = Duration::from_secs(3);
const GONE_PAUSE: Duration = Duration::from_millis(20);

/// Makes the directory, for its owner alone, unless it is there, and makes it this process's. Waits for an owner that is
/// about to be gone.
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
    // SQLite gives its other files the permissions of this one.
    private_file(&data_dir.join(DATABASE_FILE)).map_err(unusable)?;
    Ok(lock)
}

fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path)
}

/// The one connection that writes. It brings the tables to this program's version.
pub(crate) async fn open_writer(data_dir: &Path) -> Result<Pool, Error> {
    let options = SqliteConnectOptions::new()
        .filename(data_dir.join(DATABASE_FILE))
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(BUSY_TIMEOUT)
        .foreign_keys(true)
        .pragma("cache_size", format!("-{WRITER_CACHE_KIB}"))
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES.to_string())
        // Else each batch makes and deletes a file for its intermediate rows.
        .pragma("temp_store", "MEMORY");
    let pool = SqlitePoolOptions::new()
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(ACQUIRE_TIMEOUT)
        // When the disk fails, SQLite rolls back by itself, and the connection believes for ever that it
        // is still in that transaction.
        .before_acquire(|connection, _| Box::pin(async { Ok(!connection.is_in_transaction()) }));
    let pool = pool.connect_with(options).await?;
    MIGRATIONS.run(&pool).await.map_err(Error::Migrate)?;
    Ok(Pool::Sqlite(pool))
}

/// Connections that only read, also beside another process that writes.
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
    let pool = SqlitePoolOptions::new().max_connections(connections_max).acquire_timeout(ACQUIRE_TIMEOUT);
    Ok(Pool::Sqlite(pool.connect_with(options).await?))
}

/// Begins a write. It takes the write lock at once: a transaction that first reads and then asks for
/// it could be refused half-way.
pub(super) async fn begin_write(writer: &SqlitePool) -> Result<Transaction<'static, Sqlite>, Error> {
    Ok(writer.begin_with("BEGIN IMMEDIATE").await?)
}

/// Whether the database may answer later what it refused with this result code.
pub(super) fn is_passing(code: &str) -> bool {
    /// Primary result codes: BUSY, LOCKED, NOMEM, IOERR, FULL, CANTOPEN.
    const PASSING: [i32; 6] = [5, 6, 7, 10, 13, 14];
    code.parse::<i32>().is_ok_and(|code| PASSING.contains(&(code & 0xff)))
}
