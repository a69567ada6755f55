//! The API of a region for its peers: the acceptance of a peer's deployment, and the assignment of a subscriber's home by an
//! anchor.

use axum::extract::State;
use axum::routing::post;
use axum::{Extension, Json, Router};
use garde::Validate;
use seatkeeper_core::{TenantId, UserId};
use serde::Deserialize;

use crate::app::App;
use crate::error::Error;
use crate::http::{Body, name_field};
use crate::regions::{DEPLOYMENTS_PATH, DeploymentAnswer, Forwarder, HOMES_PATH, HomeAnswer};

/// A subscriber whose home is asked for.
#[derive(Deserialize, Validate)]
struct HomeRequest {
    #[garde(custom(name_field))]
    tenant: String,
    #[garde(custom(name_field))]
    user: String,
}

/// Returns the routes for the other regions.
pub(crate) fn routes() -> Router<App> {
    Router::new()
        .route(DEPLOYMENTS_PATH, post(accept))
        .route(HOMES_PATH, post(assign))
        .merge(super::arrivals::routes())
        .merge(super::adoptions::routes())
}

/// `POST /api/v1/regions/deployments`: accepts the deployment of a peer, which the layer in front has checked, and answers with
/// the own deployment.
async fn accept(
    State(app): State<App>,
    forwarder: Option<Extension<Forwarder>>,
) -> Result<Json<DeploymentAnswer>, Error> {
    let (Some(regions), Some(_)) = (&app.regions, forwarder) else {
        return Err(Error::RegionTokenRefused(None));
    };
    Ok(Json(regions.own_deployment()))
}

/// `POST /api/v1/regions/homes`: the home of a subscriber. A subscriber without a home gets the region that asks.
async fn assign(
    State(app): State<App>,
    forwarder: Option<Extension<Forwarder>>,
    Body(ask): Body<HomeRequest>,
) -> Result<Json<HomeAnswer>, Error> {
    let (Some(regions), Some(Extension(forwarder))) = (&app.regions, forwarder) else {
        return Err(Error::RegionTokenRefused(None));
    };
    let (tenant, user) = (TenantId::new(ask.tenant), UserId::new(ask.user));
    let home = regions.assign_home(&tenant, &user, forwarder.region, &app.engine).await?;
    Ok(Json(HomeAnswer { region: home.region.number(), version: home.version }))
}
