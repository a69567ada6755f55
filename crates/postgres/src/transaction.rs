//! A transaction that may be given up at any point.
//!
//! sqlx's own does not roll back what is given up while it begins: the connection would go on in an open transaction, and
//! what others do there would hold locks, and be lost.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use sqlx::pool::PoolConnection;
use sqlx::{Executor as _, PgConnection, Postgres};
use tokio::time::timeout;

/// How long the end of a transaction that was given up may take, before its connection is given up as well.
const ROLLBACK_TIMEOUT: Duration = Duration::from_secs(1);

/// A transaction. Given up before it is committed, it changes nothing, and its connection goes on if that can be told
/// to the server soon.
#[derive(Debug)]
pub struct Transaction {
    /// Taken as it ends.
    connection: Option<PoolConnection<Postgres>>,
}

impl Transaction {
    /// Begins one by this statement.
    pub async fn begin(
        connection: PoolConnection<Postgres>,
        statement: &'static str,
    ) -> Result<Self, sqlx::Error> {
        let mut transaction = Self { connection: Some(connection) };
        (&mut *transaction as &mut PgConnection).execute(statement).await?;
        Ok(transaction)
    }

    /// Commits it. Given up meanwhile, or after an error, it may be committed or not.
    pub async fn commit(self) -> Result<(), sqlx::Error> {
        self.end("COMMIT").await
    }

    /// Undoes it, and waits until that is done.
    pub async fn rollback(self) -> Result<(), sqlx::Error> {
        self.end("ROLLBACK").await
    }

    async fn end(mut self, statement: &'static str) -> Result<(), sqlx::Error> {
        (&mut *self as &mut PgConnection).execute(statement).await?;
        self.connection = None;
        Ok(())
    }
}

#[expect(clippy::expect_used, reason = "whoever takes it has the transaction to itself, and it is gone then")]
impl Deref for Transaction {
    type Target = PgConnection;

    fn deref(&self) -> &PgConnection {
        self.connection.as_ref().expect("a transaction that goes on")
    }
}

#[expect(clippy::expect_used, reason = "whoever takes it has the transaction to itself, and it is gone then")]
impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut PgConnection {
        self.connection.as_mut().expect("a transaction that goes on")
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
