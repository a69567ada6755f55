//! The API for the other regions by which homes move.

use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Extension, Json, Router};
use seatkeeper_core::{TenantId, UserId};

use super::adoptions::read;
use crate::app::App;
use crate::error::Error;
use crate::http::Body;
use crate::regions::{Forwarder, HomeAnswer, HomeRecord, RECORD_PATH, RecordQuestion};
use crate::relocation::{
    ANCHOR_PATH, ARRIVALS_PATH, AnchorUpdate, HERE_PATH, Handover, HerePage, HereQuestion, Mover,
    READINESS_PATH,
};

/// Returns the routes for moves.
pub(super) fn routes() -> Router<App> {
    Router::new()
        .route(READINESS_PATH, post(readiness))
        .route(ARRIVALS_PATH, post(arrive))
        .route(ANCHOR_PATH, post(moved))
        .route(RECORD_PATH, post(record))
        .route(HERE_PATH, post(here))
}

/// `POST /api/v1/regions/homes/readiness`: returns 204 if a home may arrive here.
async fn readiness(
    State(app): State<App>,
    forwarder: Option<Extension<Forwarder>>,
    Body(handover): Body<Handover>,
) -> Result<StatusCode, Error> {
    let (mover, forwarder) = require_peer(&app, forwarder)?;
    mover.check_readiness(handover, forwarder.region).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/v1/regions/homes/arrivals`: takes over a home.
async fn arrive(
    State(app): State<App>,
    forwarder: Option<Extension<Forwarder>>,
    body: axum::body::Body,
) -> Result<Json<HomeAnswer>, Error> {
    let (mover, forwarder) = require_peer(&app, forwarder)?;
    let handover: Handover = read(&app, body).await?;
    let home = mover.arrive(handover, forwarder.region).await?;
    Ok(Json(HomeAnswer { region: home.region.number(), version: home.version }))
}

/// `POST /api/v1/regions/homes/moved`: puts a home that has moved on record in the anchor, if the home on record confirms the
/// move, and returns the home on record.
async fn moved(
    State(app): State<App>,
    forwarder: Option<Extension<Forwarder>>,
    Body(update): Body<AnchorUpdate>,
) -> Result<Json<HomeAnswer>, Error> {
    let (mover, forwarder) = require_peer(&app, forwarder)?;
    let home = mover.note_moved(update, forwarder.region).await?;
    Ok(Json(HomeAnswer { region: home.region.number(), version: home.version }))
}

/// `POST /api/v1/regions/homes/record`: this region's own record of a home; `null` without a record.
async fn record(
    State(app): State<App>,
    forwarder: Option<Extension<Forwarder>>,
    Body(ask): Body<RecordQuestion>,
) -> Result<Json<Option<HomeRecord>>, Error> {
    let (mover, forwarder) = require_peer(&app, forwarder)?;
    let (tenant, user) = (TenantId::new(ask.tenant), UserId::new(ask.user));
    mover.recorded(&tenant, &user, forwarder.region).await.map(Json)
}

/// `POST /api/v1/regions/homes/here`: a page of the homes in this region, in the order of their last change.
async fn here(
    State(app): State<App>,
    forwarder: Option<Extension<Forwarder>>,
    Body(ask): Body<HereQuestion>,
) -> Result<Json<HerePage>, Error> {
    let (mover, _) = require_peer(&app, forwarder)?;
    mover.homes_here(ask).await.map(Json)
}

/// Returns the mover, for a request with the token of a peer.
fn require_peer(app: &App, forwarder: Option<Extension<Forwarder>>) -> Result<(&Mover, Forwarder), Error> {
    match (&app.mover, forwarder) {
        (Some(mover), Some(Extension(forwarder))) => Ok((mover, forwarder)),
        _ => Err(Error::RegionTokenRefused(None)),
    }
}
