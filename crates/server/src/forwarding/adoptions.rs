//! The API by which the command `region adopt` hands the pools of a lost region over. The token of each request is the lost
//! region's.

use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Extension, Json, Router};
use garde::Validate;
use http_body_util::{BodyExt as _, Limited};
use seatkeeper_core::Region;
use serde::de::DeserializeOwned;

use crate::app::App;
use crate::error::Error;
use crate::regions::Forwarder;
use crate::relocation::{
    AdoptedLicense, AdoptedSessions, BeginAdoption, BegunAdoption, EndAdoption, EndedAdoption, Handover,
    HomesPage, HomesQuestion, KnownHomes, MESSAGE_BYTES_MAX, Mover, PoolOpening, RemainingHomes,
    adoption_path as path,
};

type LostRegion = Option<Extension<Forwarder>>;

/// Returns the routes for adoptions.
pub(super) fn routes() -> Router<App> {
    Router::new()
        .route(path::BEGIN, post(begin))
        .route(path::HOMES, post(homes))
        .route(path::LEARN, post(learn))
        .route(path::SUBSCRIBERS, post(subscriber))
        .route(path::REMAINING, post(remaining))
        .route(path::LICENSES, post(license))
        .route(path::SESSIONS, post(sessions))
        .route(path::END, post(end))
}

/// `POST /api/v1/regions/adoptions/begin`: records the successor of a lost region.
async fn begin(State(app): State<App>, lost: LostRegion, body: Body) -> Result<Json<BegunAdoption>, Error> {
    let (mover, lost) = require_region(&app, lost)?;
    let ask: BeginAdoption = read(&app, body).await?;
    mover.begin_adoption(lost, &ask).await.map(Json)
}

/// `POST /api/v1/regions/adoptions/homes`: a page of the homes known here.
async fn homes(State(app): State<App>, lost: LostRegion, body: Body) -> Result<Json<HomesPage>, Error> {
    let (mover, lost) = require_region(&app, lost)?;
    let ask: HomesQuestion = read(&app, body).await?;
    mover.homes_page(lost, ask).await.map(Json)
}

/// `POST /api/v1/regions/adoptions/learn`: records the homes that another region knows.
async fn learn(State(app): State<App>, lost: LostRegion, body: Body) -> Result<StatusCode, Error> {
    let (mover, lost) = require_region(&app, lost)?;
    let told: KnownHomes = read(&app, body).await?;
    mover.learn_homes(lost, told).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/v1/regions/adoptions/subscribers`: takes over a subscriber.
async fn subscriber(State(app): State<App>, lost: LostRegion, body: Body) -> Result<StatusCode, Error> {
    let (mover, lost) = require_region(&app, lost)?;
    let handover: Handover = read(&app, body).await?;
    mover.adopt_home(lost, handover).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/v1/regions/adoptions/remaining`: takes over subscribers without sessions.
async fn remaining(State(app): State<App>, lost: LostRegion, body: Body) -> Result<StatusCode, Error> {
    let (mover, lost) = require_region(&app, lost)?;
    let RemainingHomes { homes } = read(&app, body).await?;
    mover.adopt_remaining(lost, homes).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/v1/regions/adoptions/licenses`: takes over a license.
async fn license(State(app): State<App>, lost: LostRegion, body: Body) -> Result<StatusCode, Error> {
    let (mover, lost) = require_region(&app, lost)?;
    let adopted: AdoptedLicense = read(&app, body).await?;
    mover.adopt_license(lost, adopted).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// `POST /api/v1/regions/adoptions/sessions`: takes over sessions of a license.
async fn sessions(State(app): State<App>, lost: LostRegion, body: Body) -> Result<Json<PoolOpening>, Error> {
    let (mover, lost) = require_region(&app, lost)?;
    let adopted: AdoptedSessions = read(&app, body).await?;
    mover.adopt_sessions(lost, adopted).await.map(Json)
}

/// `POST /api/v1/regions/adoptions/end`: ends the adoption, as far as the time goes.
async fn end(State(app): State<App>, lost: LostRegion, body: Body) -> Result<Json<EndedAdoption>, Error> {
    let (mover, lost) = require_region(&app, lost)?;
    let ask: EndAdoption = read(&app, body).await?;
    mover.end_adoption(lost, &ask).await.map(Json)
}

/// Returns the mover, and the region whose token the request has.
fn require_region(app: &App, forwarder: LostRegion) -> Result<(&Mover, Region), Error> {
    match (&app.mover, forwarder) {
        (Some(mover), Some(Extension(forwarder))) => Ok((mover, forwarder.region)),
        _ => Err(Error::RegionTokenRefused(None)),
    }
}

/// Reads a message of a peer, which may be longer than the body of a client's request.
pub(super) async fn read<T: DeserializeOwned + Validate<Context = ()>>(
    app: &App,
    body: Body,
) -> Result<T, Error> {
    let reading = Limited::new(body, MESSAGE_BYTES_MAX).collect();
    let body = tokio::time::timeout(app.settings.server.body_timeout(), reading).await;
    let body = body.map_err(|_| Error::BodyTooSlow)?.map_err(|_| Error::BodyTooLarge)?.to_bytes();
    let message: T = serde_json::from_slice(&body).map_err(Error::NotJson)?;
    message.validate().map_err(|_| Error::field("body", "must be a message of a region"))?;
    Ok(message)
}
