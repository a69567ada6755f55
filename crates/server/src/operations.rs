//! What operators and newcomers ask of a server: is it well, and what is this problem?

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::error::Error;

/// How a server is.
#[derive(Serialize, ToSchema)]
struct Health {
    /// `ok`.
    status: &'static str,
}

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz))
}

/// Pages that are not part of the API's description.
pub(crate) fn pages() -> Router<App> {
    Router::new().route("/problems/{name}", get(problem_page))
}

/// `GET /healthz`: the process is alive.
#[utoipa::path(get, path = "/healthz", tag = "operations", responses((status = 200, body = Health)))]
async fn healthz() -> axum::Json<Health> {
    axum::Json(Health { status: "ok" })
}

/// `GET /readyz`: the server may take traffic, for it can check tokens, and its ledger answers and takes records.
#[utoipa::path(
    get, path = "/readyz", tag = "operations",
    responses((status = 200, body = Health), (status = 503, body = crate::problem::Problem))
)]
async fn readyz(State(app): State<App>) -> Result<axum::Json<Health>, Error> {
    app.verifier.is_ready()?;
    app.engine.is_ready().await?;
    Ok(axum::Json(Health { status: "ok" }))
}

/// `GET /problems/{name}`: what a problem's `type` points at.
async fn problem_page(name: Result<Path<String>, PathRejection>) -> Result<impl IntoResponse, Error> {
    let page = name.ok().and_then(|Path(name)| crate::problem::page(&name)).ok_or(Error::NoSuchRoute)?;
    Ok(([(CONTENT_TYPE, "text/markdown; charset=utf-8")], page))
}
