//! The lock of a process that uses a ledger in PostgreSQL alone: an advisory lock of a connection of its own.

use std::time::Duration;

use seatkeeper_postgres::Connections;
use sqlx::PgConnection;
use tokio::sync::Mutex;

use super::{Pool, Query, Tx};
use crate::Error;

/// Time limit for the connection with the lock to read the buckets. A silent connection must not hold up the next one, and a
/// pause of PostgreSQL must not free the lock for a process that waits.
const KEPT_ANSWER_MAX: Duration = Duration::from_secs(5);

/// The lock of this process.
pub(crate) struct SoleUseLock {
    connections: Connections,
    /// The connection of the lock; `None` after a failed check. PostgreSQL frees the lock with the end of the
    /// connection.
    held: Mutex<Option<LockConnection>>,
}

/// A connection that has the lock, or tries to take the lock again.
struct LockConnection {
    connection: PgConnection,
    /// Another connection may have the lock: of another process, or a lost connection of this process whose end
    /// PostgreSQL has not noticed.
    is_locked: bool,
}

/// The epoch and the registry that all buckets have while a process owns the ledger.
#[derive(Clone, Copy)]
pub(crate) struct OwnBuckets<'a> {
    /// The epoch, as stored.
    pub(crate) epoch: i64,
    pub(crate) registry_identity: &'a str,
}

impl SoleUseLock {
    /// Takes the lock. Returns `Err(InUse)` if another process has the lock. `Ok(None)` over SQLite, where a process
    /// locks the data directory instead.
    pub(crate) async fn take(writer: &Pool) -> Result<Option<Self>, Error> {
        let Pool::Postgres(connections) = writer else { return Ok(None) };
        let connections = connections.single();
        let held = LockConnection::connect(&connections).await?;
        if !held.is_locked {
            return Err(Error::InUse);
        }
        Ok(Some(Self { connections, held: Mutex::new(Some(held)) }))
    }

    /// Returns whether every bucket is still of the owner `own`. The connection with the lock reads the buckets. If the
    /// connection is lost, a new one takes the lock again and reads; it reads also without the lock.
    ///
    /// The call may be dropped at any time: a connection in use is dropped as well, so a silent connection does not
    /// hold up the next call.
    pub(crate) async fn owns_buckets(&self, own: OwnBuckets<'_>) -> Result<bool, Error> {
        let mut held = self.held.lock().await;
        if let Some(mut kept) = held.take()
            && let Ok(Ok(owns)) = tokio::time::timeout(KEPT_ANSWER_MAX, kept.owns_buckets(own)).await
        {
            *held = Some(kept);
            return Ok(owns);
        }
        let mut new = LockConnection::connect(&self.connections).await?;
        let owns = new.owns_buckets(own).await?;
        *held = Some(new);
        Ok(owns)
    }

    /// Frees the lock.
    pub(crate) async fn free(&self) {
        drop(self.held.lock().await.take());
        self.connections.close().await;
    }
}

impl LockConnection {
    /// Connects, and takes the lock unless another connection has the lock.
    async fn connect(connections: &Connections) -> Result<Self, Error> {
        let connection = connections.acquire().await?.detach();
        let mut new = Self { connection, is_locked: false };
        new.lock().await?;
        Ok(new)
    }

    async fn lock(&mut self) -> Result<(), Error> {
        if !self.is_locked {
            let take = sqlx::query(include_str!("../../sql/lock_sole_use.sql"));
            self.is_locked = Query::on_postgres(take, &mut self.connection).scalar().await?;
        }
        Ok(())
    }

    /// Takes the lock if it is free, and reads the buckets.
    async fn owns_buckets(&mut self, own: OwnBuckets<'_>) -> Result<bool, Error> {
        self.lock().await?;
        let read = sqlx::query(include_str!("../../sql/owns_buckets.sql"));
        let read = Query::on_postgres(read, &mut self.connection);
        let read = read.bind(own.epoch).bind(own.registry_identity);
        Ok(read.scalar().await?)
    }
}

/// Returns `Err(InUse)` while a process uses the ledger alone. Otherwise none begins to do so before the end of the
/// transaction.
pub(crate) async fn refuse_in_sole_use(tx: &mut Tx) -> Result<(), Error> {
    if let Tx::Sqlite(_) = tx {
        return Ok(());
    }
    let is_shared = tx.query(include_str!("../../sql/share_sole_use.sql")).scalar::<bool>().await?;
    if is_shared { Ok(()) } else { Err(Error::InUse) }
}
