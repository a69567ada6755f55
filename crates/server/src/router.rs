//! The router: every route of the server, behind the layer that every request passes (`front`).

mod arrival;
mod awaited_body;
mod client_address;
mod cors;
mod description;
mod front;
mod headers;
mod host;
mod request_limit;

use std::sync::Arc;
use std::time::Duration;

use axum::{Router, middleware};
use utoipa::openapi::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::app::App;
use crate::error::Error;
use crate::flood::Flood;
use crate::{admin, capacities, devices, forwarding, licenses, operations, region_heartbeats};
use arrival::Arrival;
use client_address::Proxies;
use cors::Cors;
use front::Front;
use headers::DOCS;
use request_limit::RequestLimit;

fn routes() -> OpenApiRouter<App> {
    let mut routes = OpenApiRouter::with_openapi(description::without_routes())
        .merge(licenses::routes())
        .merge(devices::routes())
        .merge(capacities::routes())
        .merge(admin::routes())
        .merge(operations::routes());
    description::name_problems(routes.get_openapi_mut());
    routes
}

/// Returns the OpenAPI description of the whole API, as served at `/openapi.json`.
pub fn openapi() -> OpenApi {
    routes().into_openapi()
}

/// Returns the server's router, with `/metrics` unless `metrics.listen` is set.
pub(crate) fn router(app: App) -> Router {
    let (routes, description) = routes().split_for_parts();
    let routes = routes.merge(operations::pages()).merge(docs(description));
    let routes = match &app.regions {
        Some(_) => routes.merge(forwarding::routes()).merge(region_heartbeats::routes()),
        None => routes,
    };
    match app.settings.metrics.listen {
        Some(_) => fronted(routes, app),
        None => fronted(routes.merge(operations::metrics_page()), app),
    }
}

/// Returns the browsable API description, without a request to an external validator.
fn docs(description: OpenApi) -> SwaggerUi {
    SwaggerUi::new(DOCS).url("/openapi.json", description).config(Config::default().validator_url("none"))
}

/// Returns the router of a listener for metrics alone.
pub(crate) fn metrics_router(app: App) -> Router {
    fronted(operations::metrics_page(), app)
}

/// Puts `routes` behind the layer that every request passes.
fn fronted(routes: Router<App>, app: App) -> Router {
    let server = &app.settings.server;
    let front = Front {
        metrics: app.metrics.http.clone(),
        arrival: Arrival {
            timeout: Duration::from_secs(server.request_timeout_seconds),
            proxies: Proxies::new(server.trusted_proxies.clone(), server.proxy_header),
            unavailable: Flood::default(),
        },
        cors: Cors::new(server.cors_origins.clone()),
        request_limit: RequestLimit::for_requests(server.requests_max),
        forwarding: forwarding::Layer::new(&app),
    };
    routes
        .fallback(async || Error::NoSuchRoute)
        .method_not_allowed_fallback(async || Error::NoSuchMethod)
        // A single layer for all steps, because axum clones a layer's service for every request and moves the
        // request into the clone.
        .layer(middleware::from_fn_with_state(Arc::new(front), front::pass))
        .with_state(app)
}
