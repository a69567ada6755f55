//! The naive server: the same HTTP stack, and one durable SQLite commit for each request. It checks no
//! token, and keeps no memory of its sessions.

use std::path::Path;

use axum::extract::{Path as UrlPath, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use uuid::Uuid;

use crate::bare::{listen, on_all_cores};
use crate::error::Error;

/// The seats of its every license.
const SEATS: i64 = 1_000;

const TTL_SECONDS: u32 = 360;

#[derive(Deserialize)]
struct Acquire {
    license_key: String,
    machine_id: String,
}

/// Serves until the process is ended.
pub(crate) fn serve(database: &Path) -> Result<(), Error> {
    on_all_cores(async {
        let app = Router::new()
            .route("/api/v1/licenses/acquire", post(acquire))
            .route("/api/v1/licenses/sessions/{id}", delete(release))
            .with_state(opened(database).await?);
        listen(app).await
    })
}

async fn opened(database: &Path) -> Result<SqlitePool, Error> {
    let options = SqliteConnectOptions::new()
        .filename(database)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    // Writers of SQLite go one after another: they queue for the one connection rather than poll its lock.
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
    sqlx::raw_sql(include_str!("naive/schema.sql")).execute(&pool).await?;
    Ok(pool)
}

async fn acquire(State(pool): State<SqlitePool>, Json(ask): Json<Acquire>) -> Response {
    match take_seat(&pool, &ask).await {
        Ok((session, used)) => {
            let answer = json!({
                "session_id": session, "status": "acquired", "seats_used": used,
                "seats_remaining": SEATS - used, "seats_total": SEATS,
                "expires_in_seconds": TTL_SECONDS, "heartbeat_interval_seconds": TTL_SECONDS / 3,
            });
            (StatusCode::CREATED, Json(answer)).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

async fn release(State(pool): State<SqlitePool>, UrlPath(session): UrlPath<Uuid>) -> Response {
    match give_back(&pool, session).await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

/// Takes a seat, if there is one: the load never asks for more than there are.
async fn take_seat(pool: &SqlitePool, ask: &Acquire) -> Result<(Uuid, i64), sqlx::Error> {
    let session = Uuid::new_v4();
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    let live: i64 =
        sqlx::query_scalar(include_str!("naive/live.sql")).bind(&ask.license_key).fetch_one(&mut *tx).await?;
    if live >= SEATS {
        return Err(sqlx::Error::RowNotFound);
    }
    sqlx::query(include_str!("naive/begin_session.sql"))
        .bind(session)
        .bind(&ask.license_key)
        .bind(&ask.machine_id)
        .execute(&mut *tx)
        .await?;
    audit(&mut tx, session, "admitted").await?;
    tx.commit().await?;
    Ok((session, live + 1))
}

async fn give_back(pool: &SqlitePool, session: Uuid) -> Result<(), sqlx::Error> {
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query(include_str!("naive/end_session.sql")).bind(session).execute(&mut *tx).await?;
    audit(&mut tx, session, "ended").await?;
    tx.commit().await
}

async fn audit(tx: &mut sqlx::SqliteConnection, session: Uuid, action: &str) -> Result<(), sqlx::Error> {
    let audit = sqlx::query(include_str!("naive/append_audit.sql"));
    audit.bind(session).bind(action).execute(tx).await.map(drop)
}
