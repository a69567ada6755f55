//! The lock of a process that uses a ledger in PostgreSQL alone: an advisory lock of a connection of its own.

use seatkeeper_postgres::Connections;
use sqlx::PgConnection;
use tokio::sync::Mutex;

use super::{Pool, Query, Row, Tx};
use crate::Error;

/// The lock of this process.
pub(crate) struct SoleUseLock {
    connections: Connections,
    /// The connection that has the lock; `None` while the lock is lost.
    held: Mutex<Option<PgConnection>>,
}

impl SoleUseLock {
    /// Takes the lock. Returns `Err(InUse)` if another process has the lock. `Ok(None)` over SQLite, where a process
    /// locks the data directory instead.
    pub(crate) async fn take(writer: &Pool) -> Result<Option<Self>, Error> {
        let Pool::Postgres(connections) = writer else { return Ok(None) };
        let connections = connections.single();
        let held = try_take(&connections).await?.ok_or(Error::InUse)?;
        Ok(Some(Self { connections, held: Mutex::new(Some(held)) }))
    }

    /// Reads the first bucket over the connection with the lock. A lost lock is taken again first. Until PostgreSQL has
    /// freed the lost one, a connection without the lock serves.
    pub(crate) async fn read_first_bucket(&self) -> Result<Row, Error> {
        let mut held = self.held.lock().await;
        if held.is_none() {
            *held = try_take(&self.connections).await?;
        }
        let text = sqlx::query(include_str!("../../sql/first_bucket.sql"));
        let read = match &mut *held {
            Some(connection) => Query::on_postgres(text, connection).fetch_one().await,
            None => {
                let mut connection = self.connections.acquire().await?;
                Query::on_postgres(text, &mut connection).fetch_one().await
            }
        };
        if read.is_err() {
            // PostgreSQL frees the lock with the end of the connection.
            *held = None;
        }
        Ok(read?)
    }

    /// Frees the lock.
    pub(crate) async fn free(&self) {
        drop(self.held.lock().await.take());
        self.connections.close().await;
    }
}

/// Returns a connection with the lock, or `None` if another connection has the lock.
async fn try_take(connections: &Connections) -> Result<Option<PgConnection>, Error> {
    let mut connection = connections.acquire().await?.detach();
    let take = sqlx::query(include_str!("../../sql/lock_sole_use.sql"));
    let is_taken = Query::on_postgres(take, &mut connection).scalar::<bool>().await?;
    Ok(is_taken.then_some(connection))
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
