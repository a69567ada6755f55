//! The API of a home for batches of heartbeats from other regions.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::routing::post;
use axum::{Extension, Json, Router};
use futures_util::{StreamExt as _, stream};
use http_body_util::{BodyExt as _, Limited};
use seatkeeper_core::{PoolKind, RequestId, TenantId, UserId};
use seatkeeper_engine::HeartbeatOutcome;
use tokio::sync::Semaphore;

use crate::app::App;
use crate::auth::{Caller, Scopes};
use crate::error::Error;
use crate::http::{Meta, renew};
use crate::licenses::renewed;
use crate::limits::StandingNote;
use crate::problem::Problem;
use crate::regions::{
    BATCH_BYTES_MAX, BEATS_MAX, BatchAnswer, Client, Forwarder, HEARTBEATS_PATH, Heartbeat, HeartbeatAnswer,
    Renewal,
};

/// Heartbeats of a batch that the registry gets at once: a quarter of the longest batch.
const AT_ONCE_MAX: usize = BEATS_MAX.div_ceil(4);

/// Time limit of a heartbeat. A batch therefore takes four times the limit at most, and a few slow heartbeats, such as
/// of ended sessions while the ledger is silent, delay the answer to the batch by the limit alone.
const DECISION_TIMEOUT: Duration = Duration::from_millis(500);

/// Time limit of the check of a token that comes along.
const TOKEN_TIMEOUT: Duration = Duration::from_millis(250);

/// Maximum of slow heartbeats under way on this node after the answer to the batch.
const SLOW_MAX: usize = 4 * BEATS_MAX;

static SLOW: Semaphore = Semaphore::const_new(SLOW_MAX);

/// Returns the routes for the other regions.
pub(crate) fn routes() -> Router<App> {
    Router::new().route(HEARTBEATS_PATH, post(renew_all)).layer(DefaultBodyLimit::disable())
}

/// `POST /api/v1/regions/heartbeats`: renews the sessions of a batch, each for its caller, as the API of the session
/// does.
async fn renew_all(
    State(app): State<App>,
    forwarder: Option<Extension<Forwarder>>,
    body: Body,
) -> Result<Json<BatchAnswer>, Error> {
    if forwarder.is_none() {
        return Err(Error::RegionTokenRefused(None));
    }
    let reading = Limited::new(body, BATCH_BYTES_MAX).collect();
    let body = tokio::time::timeout(app.settings.server.body_timeout(), reading).await;
    let body = body.map_err(|_| Error::BodyTooSlow)?.map_err(|_| Error::BodyTooLarge)?.to_bytes();
    let batch: Vec<Heartbeat> = serde_json::from_slice(&body).map_err(Error::NotJson)?;
    if batch.len() > BEATS_MAX {
        return Err(Error::BodyTooLarge);
    }
    let deciding = stream::iter(batch.into_iter().enumerate()).map(|(index, heartbeat)| {
        let deciding = decide(&app, heartbeat);
        async move { (index, deciding.await) }
    });
    // A slow heartbeat takes one of the places, and lets the heartbeats behind it pass.
    let mut answers: Vec<_> = deciding.buffer_unordered(AT_ONCE_MAX).collect().await;
    answers.sort_unstable_by_key(|(index, _)| *index);
    Ok(Json(BatchAnswer { answers: answers.into_iter().map(|(_, answer)| answer).collect() }))
}

/// Renews a session within [`DECISION_TIMEOUT`]. A heartbeat that fails by a fault of this region is undecided:
/// forwarded by itself, the heartbeat would get no better answer.
///
/// A slow heartbeat goes on without the batch. A search of a bucket, on which further heartbeats wait, therefore ends,
/// and gives the caller's quota back.
async fn decide(app: &App, heartbeat: Heartbeat) -> HeartbeatAnswer {
    let mut renewal = Box::pin(renew_one(app.clone(), heartbeat));
    let decided = tokio::time::timeout(DECISION_TIMEOUT, &mut renewal).await;
    if decided.is_err()
        && let Ok(place) = SLOW.try_acquire()
    {
        drop(tokio::spawn(async move {
            drop(renewal.await);
            drop(place);
        }));
    }
    match decided {
        Ok(Ok(Some(renewal))) => HeartbeatAnswer::Renewed(renewal),
        // The session's API leads the sender of a home on its way to the new home.
        Ok(Ok(None) | Err(Error::HomeMoving { .. })) => HeartbeatAnswer::NotRenewed,
        Ok(Err(error)) => match Problem::from(error).is_server_error() {
            true => HeartbeatAnswer::Undecided,
            false => HeartbeatAnswer::NotRenewed,
        },
        Err(_) => HeartbeatAnswer::Undecided,
    }
}

/// Renews a session. `Ok(None)` for a session that is not live here: the sender forwards the heartbeat by itself, and
/// gets the reason from the session's API.
async fn renew_one(app: App, heartbeat: Heartbeat) -> Result<Option<Renewal>, Error> {
    let Some(regions) = &app.regions else { return Ok(None) };
    let (id, kind) = (heartbeat.id, heartbeat.kind);
    let meta = meta_of(&heartbeat.client);
    // A key that must be fetched first takes longer than a batch waits.
    let Ok(who) = tokio::time::timeout(TOKEN_TIMEOUT, caller_of(&app, heartbeat)).await else {
        return Ok(None);
    };
    let who = who?;
    let home = match kind {
        PoolKind::License => regions.home_of_session(id),
        // A home that has moved here keeps the ids of its sessions.
        PoolKind::Subscriber => {
            regions.home_of_held(&who.tenant, &who.user, id).await?.map(|home| home.region)
        }
        PoolKind::Capacity | PoolKind::Group => None,
    };
    if home != Some(regions.own()) {
        return Ok(None);
    }
    // A session in place of the home lives on only after a question to the home, which a heartbeat by itself asks.
    if app.engine.pool_without_home(id, who.authority()).await?.is_some() {
        return Ok(None);
    }
    let liveness = match renew(&app, (kind, id), &who, &meta).await? {
        HeartbeatOutcome::Renewed(liveness) => liveness,
        HeartbeatOutcome::Ended(_) | HeartbeatOutcome::Missing => return Ok(None),
    };
    let body = match kind {
        PoolKind::License => {
            let body = serde_json::value::to_raw_value(&renewed(&app, id, &liveness));
            Some(body.map_err(|error| Error::Unwritable(Box::new(error)))?)
        }
        PoolKind::Subscriber | PoolKind::Capacity | PoolKind::Group => None,
    };
    Ok(Some(Renewal { body, standing: meta.standing.noted() }))
}

/// Returns the caller of a heartbeat: by the token, or without a token as the sending region names the caller.
async fn caller_of(app: &App, heartbeat: Heartbeat) -> Result<Arc<Caller>, Error> {
    let Heartbeat { kind, tenant, user, admin, service, token, .. } = heartbeat;
    match token {
        Some(token) => {
            let caller = app.verifier.caller(&token).await?;
            Ok(if kind == PoolKind::License { caller } else { caller.without_license_token()? })
        }
        None => Ok(Arc::new(Caller {
            tenant: TenantId::new(tenant),
            user: UserId::new(user),
            scopes: Scopes { admin, service, license: None },
            expires_at_seconds: 0,
        })),
    }
}

fn meta_of(client: &Client) -> Meta {
    let id = RequestId::new(client.request_id.as_deref().unwrap_or_default());
    Meta { id, ip: client.address, standing: StandingNote::default() }
}
