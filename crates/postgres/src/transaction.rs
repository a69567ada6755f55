//! A transaction that is safe to drop at any await point.
//!
//! The transaction of sqlx is not rolled back if dropped during `BEGIN`. Its connection returns to the pool
//! inside an open transaction, and later work on the connection would hold locks and be lost.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Executor as _, PgConnection, Postgres};
use tokio::time::timeout;

/// Time limit of the rollback after a drop. Beyond the limit the connection is closed. A new connection takes
/// several round trips, so on a slow network a short limit would leave the pool without connections.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(5);

/// A transaction. A drop before the commit rolls back. The connection then returns to the pool if the
/// rollback takes at most 5 s, and is closed otherwise.
#[derive(Debug)]
pub struct Transaction {
    /// `None` after the end of the transaction.
    connection: Option<PoolConnection<Postgres>>,
}

impl Transaction {
    /// Begins a transaction with `statement`.
    pub async fn begin(
        connection: PoolConnection<Postgres>,
        statement: &'static str,
    ) -> Result<Self, sqlx::Error> {
        let mut transaction = Self { connection: Some(connection) };
        (&mut *transaction as &mut PgConnection).execute(statement).await?;
        Ok(transaction)
    }

    /// Commits the transaction. After a drop or an error during the call, the outcome is unknown.
    pub async fn commit(self) -> Result<(), sqlx::Error> {
        self.end("COMMIT").await
    }

    /// Rolls the transaction back, and waits for the server's answer.
    pub async fn rollback(self) -> Result<(), sqlx::Error> {
        self.end("ROLLBACK").await
    }

    async fn end(mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        (&mut *self as &mut PgConnection).execute(statement).await?;
        self.connection = None;
        Ok(())
    }
}

#[expect(clippy::expect_used, reason = "`end` and `drop` alone take the connection, as the last step")]
impl Deref for Transaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect("the transaction is open")
    }
}

#[expect(clippy::expect_used, reason = "`end` and `drop` alone take the connection, as the last step")]
impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect("the transaction is open")
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let Some(mut connection) = self.connection.take() else { return };
        tokio::spawn(async move {
            let told = timeout(ROLLBACK_TIMEOUT, connection.execute("ROLLBACK")).await;
            if !matches!(told, Ok(Ok(_))) {
                connection.close_on_drop();
            }
        });
    }
}
