//! Time limits for answers of the server.
//!
//! A firewall or a fenced host may drop a connection without an error, so an answer may never come. The server's
//! `statement_timeout` does not reach the node then, and sqlx sets no TCP keepalive. Each limit is longer than the server's own
//! for the same statement: a slow statement ends by the server's error, and only a lost connection by a limit.

use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{PgConnection, Postgres};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

/// Time limit for the answer to a statement. The server cancels a statement after 5 s.
const ANSWER_MAX: Duration = Duration::from_secs(8);

/// Time limit for the answer to a statement in a transaction of [`begin_long`](super::connect::begin_long). The server cancels
/// the statement after 30 s.
pub(super) const LONG_ANSWER_MAX: Duration = Duration::from_secs(33);

/// Runs a single statement on a connection. A connection whose answer is late is closed, and does not return to the pool.
pub(super) async fn run<T>(
    mut connection: PoolConnection<Postgres>,
    statement: impl AsyncFnOnce(&mut PgConnection) -> Result<T, sqlx::Error>,
) -> Result<Result<T, sqlx::Error>, Elapsed> {
    let answer = timeout(ANSWER_MAX, statement(&mut connection)).await;
    if answer.is_err() {
        connection.close_on_drop();
    }
    answer
}

/// Waits for the answer to a short statement of a transaction. After a late answer the caller must drop the transaction, whose
/// connection is closed unless the server answers the rollback.
pub(super) async fn answered<T>(statement: impl Future<Output = T>) -> Result<T, Elapsed> {
    timeout(ANSWER_MAX, statement).await
}

/// Waits like [`answered`], for a statement that waits for a bucket's lock or may change many sessions.
pub(super) async fn answered_long<T>(statement: impl Future<Output = T>) -> Result<T, Elapsed> {
    timeout(LONG_ANSWER_MAX, statement).await
}
