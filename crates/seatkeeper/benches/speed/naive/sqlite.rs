//! A store in SQLite with one commit per request.

use std::path::Path;

use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use uuid::Uuid;

use super::{Acquire, SEATS, Store};
use crate::error::Error;

#[derive(Clone)]
pub(super) struct Sqlite(SqlitePool);

impl Sqlite {
    pub(super) async fn create(database: &Path) -> Result<Self, Error> {
        let options = SqliteConnectOptions::new()
            .filename(database)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Full);
        // SQLite has a single writer: writers queue for the only connection instead of polling the lock.
        let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
        sqlx::raw_sql(include_str!("sqlite/schema.sql")).execute(&pool).await?;
        Ok(Self(pool))
    }
}

impl Store for Sqlite {
    async fn take_seat(&self, ask: &Acquire) -> Result<(Uuid, i64), sqlx::Error> {
        let session = Uuid::new_v4();
        let mut tx = self.0.begin_with("BEGIN IMMEDIATE").await?;
        let live: i64 =
            sqlx::query_scalar(include_str!("live.sql")).bind(&ask.license_key).fetch_one(&mut *tx).await?;
        if live >= SEATS {
            return Err(sqlx::Error::RowNotFound);
        }
        sqlx::query(include_str!("sqlite/begin_session.sql"))
            .bind(session)
            .bind(&ask.license_key)
            .bind(&ask.machine_id)
            .execute(&mut *tx)
            .await?;
        audit(&mut tx, session, "admitted").await?;
        tx.commit().await?;
        Ok((session, live + 1))
    }

    async fn give_back(&self, session: Uuid) -> Result<(), sqlx::Error> {
        let mut tx = self.0.begin_with("BEGIN IMMEDIATE").await?;
        sqlx::query(include_str!("sqlite/end_session.sql")).bind(session).execute(&mut *tx).await?;
        audit(&mut tx, session, "ended").await?;
        tx.commit().await
    }
}

async fn audit(tx: &mut sqlx::SqliteConnection, session: Uuid, action: &str) -> Result<(), sqlx::Error> {
    let audit = sqlx::query(include_str!("sqlite/append_audit.sql"));
    audit.bind(session).bind(action).execute(tx).await.map(drop)
}
