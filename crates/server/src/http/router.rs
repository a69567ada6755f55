//! The front page: every route of the product.

use std::sync::Arc;
use std::time::Duration;

use axum::{Router, middleware};
use utoipa_axum::router::OpenApiRouter;
use utoipa_swagger_ui::SwaggerUi;

use super::client_address::Proxies;
use super::description;
use super::front::{self, Front};
use super::request_id::Arrival;
use super::room::Room;
use crate::app::App;
use crate::error::Error;
use crate::{admin, capacities, devices, licenses, operations};

fn routes() -> OpenApiRouter<App> {
    let mut routes = OpenApiRouter::with_openapi(description::without_routes())
        .nest("/api/v1/licenses", licenses::routes())
        .nest("/api/v1/devices", devices::routes())
        .nest("/api/v1/capacities", capacities::routes())
        .nest("/api/v1/admin", admin::routes())
        .merge(operations::routes());
    description::name_problems(routes.get_openapi_mut());
    routes
}

/// The description of the whole API, as `/openapi.json` serves it.
pub fn openapi() -> utoipa::openapi::OpenApi {
    routes().into_openapi()
}

/// The server's router.
pub(crate) fn router(app: App) -> Router {
    let server = &app.settings.server;
    let front = Front {
        metrics: app.metrics.http.clone(),
        arrival: Arrival {
            timeout: Duration::from_secs(server.request_timeout_seconds),
            proxies: Proxies::new(server.trusted_proxies.clone(), server.proxy_header),
        },
        room: Room::for_requests(server.requests_max),
    };
    let (routes, description) = routes().split_for_parts();
    routes
        .merge(operations::pages())
        .merge(SwaggerUi::new("/docs").url("/openapi.json", description))
        .fallback(async || Error::NoSuchRoute)
        .method_not_allowed_fallback(async || Error::NoSuchMethod)
        // One layer for all of it: each is made anew, and moves the request, every time.
        .layer(middleware::from_fn_with_state(Arc::new(front), front::pass))
        .with_state(app)
}
