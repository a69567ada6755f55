//! Endpoints for operators: liveness, readiness, health of Redis and the ledger, pages of problems, metrics.

use std::time::Duration;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderMap};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use seatkeeper_redis::{NoFigures, ServerFigures};
use seatkeeper_registry::{Store, UnreadableEntry};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::error::Error;

/// The content type of [`metrics`].
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The state of a server.
#[derive(Serialize, ToSchema)]
struct Health {
    /// `ok`.
    status: &'static str,
}

/// The state of a dependency of the server.
#[derive(Serialize, ToSchema)]
struct PartHealth {
    /// `ok`: answers and is usable. `down`: does not answer. `unfit`: answers, but must not be used in its
    /// present state. `none`: not configured.
    status: PartStatus,
    /// Latency of the answer in milliseconds; absent without an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_ms: Option<f64>,
    /// The faults of the dependency; absent if the dependency is healthy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    problems: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum PartStatus {
    Ok,
    Down,
    Unfit,
    None,
}

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(healthz))
        .routes(routes!(readyz))
        .routes(routes!(health_redis))
        .routes(routes!(health_ledger))
}

/// Returns the routes outside the API description.
pub(crate) fn pages() -> Router<App> {
    Router::new().route("/problems/{name}", get(problem_page))
}

/// Returns the route of the metrics page.
pub(crate) fn metrics_page() -> Router<App> {
    Router::new().route("/metrics", get(metrics))
}

/// `GET /healthz`: the process is alive.
#[utoipa::path(get, path = "/healthz", tag = "operations", responses((status = 200, body = Health)))]
async fn healthz() -> axum::Json<Health> {
    axum::Json(Health { status: "ok" })
}

/// `GET /readyz`: the server may take traffic. The server can check tokens, and reaches its registry. A ledger that fails
/// makes no server unready while heartbeats go on.
#[utoipa::path(
    get, path = "/readyz", tag = "operations",
    responses((status = 200, body = Health), (status = 503, body = crate::problem::Problem, description = "unavailable"))
)]
async fn readyz(State(app): State<App>) -> Result<axum::Json<Health>, Error> {
    app.verifier.is_ready()?;
    app.engine.is_ready()?;
    Ok(axum::Json(Health { status: "ok" }))
}

/// `GET /health/redis`: the state of the shared Redis, as seen by this node.
#[utoipa::path(
    get, path = "/health/redis", tag = "operations",
    responses(
        (status = 200, body = PartHealth, description = "All is well, or there is no Redis"),
        (status = 503, body = PartHealth, description = "`problems` says what is wrong")
    )
)]
async fn health_redis(State(app): State<App>) -> PartHealth {
    let Some(redis) = &app.looks.redis else {
        return PartHealth { status: PartStatus::None, latency_ms: None, problems: Vec::new() };
    };
    let told = redis.latest().await;
    let (servers, latency) =
        told.as_ref().map_or((&[][..], None), |told| (&told.servers, Some(told.latency)));
    let silent = servers.iter().filter(|server| matches!(server, Err(NoFigures::Silent))).count();
    let mut problems: Vec<_> = servers.iter().filter_map(problem_of).collect();
    problems.sort_unstable();
    problems.dedup();
    if servers.is_empty() {
        problems.push("no server can be reached".to_owned());
    } else if silent > 0 {
        problems.push(format!("{silent} of {} servers do not answer", servers.len()));
    }
    problems.extend(held_up_buckets(&app, Store::Redis));
    let is_up = told.as_ref().is_some_and(|told| told.is_up());
    PartHealth::new(is_up, latency, problems)
}

/// Returns the problem of a server, unless the server is well or silent.
fn problem_of(server: &Result<ServerFigures, NoFigures>) -> Option<String> {
    match server {
        Ok(figures) => figures.unfit.clone(),
        Err(NoFigures::Rejected(why)) => Some(format!("a server does not accept this node: {why}")),
        Err(NoFigures::Silent) => None,
    }
}

/// `GET /health/ledger`: the state of the system of record, as seen by this node.
#[utoipa::path(
    get, path = "/health/ledger", tag = "operations",
    responses(
        (status = 200, body = PartHealth, description = "All is well"),
        (status = 503, body = PartHealth, description = "`problems` says what is wrong")
    )
)]
async fn health_ledger(State(app): State<App>) -> PartHealth {
    let pulse = app.looks.ledger.latest().await;
    let is_up = pulse.as_ref().is_some_and(|pulse| pulse.is_up);
    let mut problems = Vec::new();
    if !is_up {
        problems.push("the database does not answer".to_owned());
    } else if app.engine.are_records_failing() {
        problems.push("the latest records could not be written".to_owned());
    }
    problems.extend(held_up_buckets(&app, Store::PostgreSql));
    PartHealth::new(is_up, pulse.map(|pulse| pulse.latency), problems)
}

/// Returns a problem for each journal of a store that an unreadable entry holds up.
fn held_up_buckets(app: &App, store: Store) -> impl Iterator<Item = String> {
    let entries = app.engine.registries().all().flat_map(|backend| backend.registry.unreadable_entries());
    let of_store = entries.filter(move |entry| entry.store == store);
    of_store.map(|UnreadableEntry { bucket, stream, id, .. }| {
        let bucket = bucket.number();
        format!("bucket {bucket} is held up: entry {id} of its journal {stream} cannot be read")
    })
}

impl PartHealth {
    /// Builds the state from a probe. `latency` is the duration of the probe.
    fn new(is_up: bool, latency: Option<Duration>, problems: Vec<String>) -> Self {
        let status = match (is_up, problems.is_empty()) {
            (true, true) => PartStatus::Ok,
            (true, false) => PartStatus::Unfit,
            (false, _) => PartStatus::Down,
        };
        let latency_ms = latency.filter(|_| is_up).map(|latency| latency.as_micros() as f64 / 1e3);
        Self { status, latency_ms, problems }
    }
}

impl IntoResponse for PartHealth {
    fn into_response(self) -> Response {
        let code = match self.status {
            PartStatus::Ok | PartStatus::None => StatusCode::OK,
            PartStatus::Down | PartStatus::Unfit => StatusCode::SERVICE_UNAVAILABLE,
        };
        (code, axum::Json(self)).into_response()
    }
}

/// `GET /problems/{name}`: the page that a problem's `type` links to.
async fn problem_page(name: Result<Path<String>, PathRejection>) -> Result<impl IntoResponse, Error> {
    let page = name.ok().and_then(|Path(name)| crate::problem::page(&name)).ok_or(Error::NoSuchRoute)?;
    Ok(([(CONTENT_TYPE, "text/markdown; charset=utf-8")], page))
}

/// `GET /metrics`: the page for Prometheus.
async fn metrics(State(app): State<App>, headers: HeaderMap) -> Result<impl IntoResponse, Error> {
    let series = app.metrics_access.check(&headers)?;
    Ok(([(CONTENT_TYPE, OPEN_METRICS)], app.metrics_page.text(series).await?))
}
