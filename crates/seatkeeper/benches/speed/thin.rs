//! The thin server, a design written by hand in an afternoon: axum, a lean Lua script for each request, and a
//! multiplexed connection to Redis. The thin server checks no token, limits no rate, and keeps no record.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, patch, post};
use axum::{Json, Router};
use redis::aio::MultiplexedConnection;
use redis::{AsyncCommands as _, RedisError, Script};
use seatkeeper_load::ERROR_WHEN_FULL;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::bare::{listen, on_all_cores};
use crate::error::Error;

const TTL_SECONDS: u32 = 3_600;

const RETRY_AFTER_SECONDS: u32 = 30;

/// Returns the key of a license. The thin server reads the number of seats from the key.
pub(crate) fn license_key(seats: u32, number: usize) -> String {
    format!("thin-{number}-{seats}")
}

#[derive(Clone)]
struct Thin {
    redis: MultiplexedConnection,
    scripts: Arc<Scripts>,
}

struct Scripts {
    acquire: Script,
    heartbeat: Script,
}

#[derive(Deserialize)]
struct Acquire {
    license_key: String,
    machine_id: String,
}

struct Failed(RedisError);

impl From<RedisError> for Failed {
    fn from(error: RedisError) -> Self {
        Self(error)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, self.0.to_string()).into_response()
    }
}

/// Serves from the Redis at `url` until the process is killed.
pub(crate) fn serve(url: &str) -> Result<(), Error> {
    on_all_cores(async {
        let redis = redis::Client::open(url)?.get_multiplexed_async_connection().await?;
        let scripts = Scripts {
            acquire: Script::new(include_str!("thin/acquire.lua")),
            heartbeat: Script::new(include_str!("thin/heartbeat.lua")),
        };
        let app = Router::new()
            .route("/api/v1/licenses/acquire", post(acquire))
            .route("/api/v1/licenses/sessions/{id}/heartbeat", patch(heartbeat))
            .route("/api/v1/licenses/sessions/{id}", delete(release))
            .with_state(Thin { redis, scripts: Arc::new(scripts) });
        listen(app).await
    })
}

async fn acquire(State(thin): State<Thin>, Json(ask): Json<Acquire>) -> Result<Response, Failed> {
    let Thin { mut redis, scripts } = thin;
    let seats = ask.license_key.rsplit('-').next().and_then(|seats| seats.parse().ok()).unwrap_or(0_u32);
    // A session's id begins with its license, so that a heartbeat finds the license without a look-up.
    let session = format!("{}.{}", ask.license_key, Uuid::new_v4());
    let mut call = scripts.acquire.key(&ask.license_key);
    call.arg(seats).arg(&session).arg(TTL_SECONDS);
    let (taken, used): (u32, u32) = call.invoke_async(&mut redis).await?;
    if taken == 0 {
        let answer = json!({
            "error": ERROR_WHEN_FULL, "machine_id": ask.machine_id, "seats_available": 0,
            "seats_total": seats, "retry_after_seconds": RETRY_AFTER_SECONDS,
        });
        let retry_after = [(header::RETRY_AFTER, RETRY_AFTER_SECONDS.to_string())];
        return Ok((StatusCode::FORBIDDEN, retry_after, Json(answer)).into_response());
    }
    let answer = json!({
        "session_id": session, "status": "acquired", "seats_used": used, "seats_remaining": seats - used,
        "seats_total": seats, "expires_in_seconds": TTL_SECONDS,
        "heartbeat_interval_seconds": TTL_SECONDS / 3,
    });
    Ok((StatusCode::CREATED, Json(answer)).into_response())
}

async fn heartbeat(State(thin): State<Thin>, Path(session): Path<String>) -> Result<Response, Failed> {
    let Thin { mut redis, scripts } = thin;
    let mut call = scripts.heartbeat.key(license_of(&session));
    call.arg(&session).arg(TTL_SECONDS);
    // A second heartbeat within a second moves no end: the session counts as live.
    let _moved: u32 = call.invoke_async(&mut redis).await?;
    Ok(Json(json!({ "status": "active", "expires_in_seconds": TTL_SECONDS })).into_response())
}

async fn release(State(thin): State<Thin>, Path(session): Path<String>) -> Result<Response, Failed> {
    let Thin { mut redis, .. } = thin;
    let removed: u32 = redis.zrem(license_of(&session), &session).await?;
    Ok(if removed == 1 { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND }.into_response())
}

fn license_of(session: &str) -> &str {
    session.split_once('.').map_or(session, |(license, _)| license)
}
