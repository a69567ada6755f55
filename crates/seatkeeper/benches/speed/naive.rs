//! The naive server: the product's HTTP stack with one durable commit per request, in SQLite or in
//! PostgreSQL. The naive server checks no token, and caches no sessions. A further database is another
//! `Store`.

mod postgres;
mod sqlite;

use std::path::Path;

use axum::extract::{Path as UrlPath, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, post};
use axum::{Json, Router};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::bare::{listen, on_all_cores};
use crate::error::Error;
pub(crate) use postgres::{Postgres, license_key};
use sqlite::Sqlite;

/// Seats of every license.
const SEATS: i64 = 1_000;

const TTL_SECONDS: u32 = 360;

#[derive(Deserialize)]
struct Acquire {
    license_key: String,
    machine_id: String,
}

/// The database of licenses and sessions. The load never claims more seats than a license has.
trait Store: Clone + Send + Sync + 'static {
    /// Takes a seat. Returns the session and the number of taken seats.
    fn take_seat(&self, ask: &Acquire) -> impl Future<Output = Result<(Uuid, i64), sqlx::Error>> + Send;

    fn give_back(&self, session: Uuid) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

/// Serves from a new SQLite database until the process is killed.
pub(crate) fn serve_sqlite(database: &Path) -> Result<(), Error> {
    on_all_cores(async { listen(app(Sqlite::create(database).await?)).await })
}

/// Serves from an empty PostgreSQL database, over a pool of `connections`, until the process is killed.
pub(crate) fn serve_postgres(url: &str, connections: u32) -> Result<(), Error> {
    on_all_cores(async { listen(app(Postgres::create(url, connections).await?)).await })
}

fn app<S: Store>(store: S) -> Router {
    Router::new()
        .route("/api/v1/licenses/acquire", post(acquire::<S>))
        .route("/api/v1/licenses/sessions/{id}", delete(release::<S>))
        .with_state(store)
}

async fn acquire<S: Store>(State(store): State<S>, Json(ask): Json<Acquire>) -> Response {
    match store.take_seat(&ask).await {
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

async fn release<S: Store>(State(store): State<S>, UrlPath(session): UrlPath<Uuid>) -> Response {
    match store.give_back(session).await {
        Ok(()) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
