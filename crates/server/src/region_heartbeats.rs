//! The API of a home for batches of heartbeats from other regions.

use std::net::IpAddr;

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::routing::post;
use axum::{Extension, Json, Router};
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, Limited};
use seatkeeper_core::{PoolKind, RequestId, TenantId, UserId};
use seatkeeper_engine::HeartbeatOutcome;

use crate::app::App;
use crate::auth::{Caller, Scopes};
use crate::error::Error;
use crate::http::{Meta, renew};
use crate::licenses::renewed;
use crate::limits::StandingNote;
use crate::regions::{
    BATCH_BYTES_MAX, BEATS_MAX, Forwarder, HEARTBEATS_PATH, Heartbeat, Regions, Renewal, Renewals,
};

/// Heartbeats of a batch that the registry gets at once.
const AT_ONCE_MAX: usize = 128;

/// Returns the routes for the other regions.
pub(crate) fn routes() -> Router<App> {
    Router::new().route(HEARTBEATS_PATH, post(renew_all)).layer(DefaultBodyLimit::disable())
}

/// `POST /api/v1/regions/heartbeats`: renews the sessions of a batch, each for its caller, as the API of the session does.
async fn renew_all(
    State(app): State<App>,
    forwarder: Option<Extension<Forwarder>>,
    body: Body,
) -> Result<Json<Renewals>, Error> {
    let (Some(regions), Some(Extension(_))) = (&app.regions, forwarder) else {
        return Err(Error::RegionTokenRefused(None));
    };
    let reading = Limited::new(body, BATCH_BYTES_MAX).collect();
    let body = tokio::time::timeout(app.settings.server.body_timeout(), reading).await;
    let body = body.map_err(|_| Error::BodyTooSlow)?.map_err(|_| Error::BodyTooLarge)?.to_bytes();
    let batch: Vec<Heartbeat> = serde_json::from_slice(&body).map_err(Error::NotJson)?;
    if batch.len() > BEATS_MAX {
        return Err(Error::BodyTooLarge);
    }
    let renewals = stream::iter(batch).map(|heartbeat| renew_one(&app, regions, heartbeat));
    Ok(Json(Renewals { renewals: renewals.buffered(AT_ONCE_MAX).collect().await }))
}

/// Renews a session. `None` for every other answer than success: the sender forwards the heartbeat by itself, and gets that
/// answer from the session's API.
async fn renew_one(app: &App, regions: &Regions, heartbeat: Heartbeat) -> Option<Renewal> {
    let Heartbeat { id, kind, tenant, user, admin, service, client } = heartbeat;
    let (tenant, user) = (TenantId::new(tenant), UserId::new(user));
    let home = match kind {
        PoolKind::License => regions.home_of_session(id),
        // A home that has moved here keeps the ids of its sessions.
        PoolKind::Subscriber => regions.home_of_held(&tenant, &user, id).await.ok()?.map(|home| home.region),
        PoolKind::Capacity | PoolKind::Group => None,
    };
    if home != Some(regions.own()) {
        return None;
    }
    let who =
        Caller { tenant, user, scopes: Scopes { admin, service, license: None }, expires_at_seconds: 0 };
    // A session in place of the home lives on only after a question to the home, which a heartbeat by itself asks.
    if app.engine.pool_without_home(id, who.authority()).await.ok()?.is_some() {
        return None;
    }
    let meta = meta_of(client.address, client.request_id);
    match renew(app, (kind, id), &who, &meta).await.ok()? {
        HeartbeatOutcome::Renewed(liveness) => {
            let body = match kind {
                PoolKind::License => {
                    Some(serde_json::value::to_raw_value(&renewed(app, id, &liveness)).ok()?)
                }
                PoolKind::Subscriber | PoolKind::Capacity | PoolKind::Group => None,
            };
            Some(Renewal { body, standing: meta.standing.noted() })
        }
        HeartbeatOutcome::Ended(_) | HeartbeatOutcome::Missing => None,
    }
}

fn meta_of(ip: Option<IpAddr>, request_id: Option<String>) -> Meta {
    let id = RequestId::new(request_id.unwrap_or_default());
    Meta { id, ip, standing: StandingNote::default() }
}
