//! Revocation of the caller's sessions on every device, or on every device but one.

use axum::extract::State;
use axum::http::StatusCode;
use seatkeeper_core::{Authority, EndReason, Origin, PoolId, PoolKind, Reach, SessionId};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::in_use::LISTED_MAX;
use super::pool_of;
use crate::app::App;
use crate::error::Error;
use crate::http::{Meta, ParameterProblems, Problems, Query, Who};
use crate::problem::Problem;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RevokeQuery {
    /// Session to keep: a live session of the caller.
    except: Option<Uuid>,
}

/// `DELETE /sessions`: ends every session of the caller, except the session named by `except`.
#[utoipa::path(
    delete, path = "/api/v1/devices/sessions", tag = "devices", operation_id = "revoke_devices",
    security(("bearer" = [])), params(RevokeQuery),
    responses(
        Problems, ParameterProblems,
        (status = 204, description = "The screens are free"),
        (status = 404, body = Problem, description = "session-not-found")
    )
)]
pub(super) async fn revoke_all(
    State(app): State<App>,
    who: Who,
    meta: Meta,
    Query(query): Query<RevokeQuery>,
) -> Result<StatusCode, Error> {
    let (pool, origin) = (pool_of(&who.tenant, &who.user), meta.origin(who.as_user()));
    match query.except {
        None => {
            let durability = app.settings.devices.durability;
            app.engine.end_all(&pool, EndReason::Revoked, &origin, durability).await?;
        }
        Some(uuid) => {
            let kept = SessionId::try_from(uuid).map_err(|_| Error::SessionNotFound)?;
            end_all_but(kept, &app, &pool, &origin).await?;
        }
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn end_all_but(kept: SessionId, app: &App, pool: &PoolId, origin: &Origin) -> Result<(), Error> {
    let view = app.engine.view(pool, LISTED_MAX).await?;
    let sessions = view.map(|view| view.sessions).unwrap_or_default();
    if !sessions.iter().any(|live| live.session.id == kept) {
        return Err(Error::SessionNotFound);
    }
    let durability = app.settings.devices.durability;
    let all_of_pool = Authority::new(pool.tenant.clone(), Reach::Tenant).through(PoolKind::Subscriber);
    for live in sessions.iter().filter(|live| live.session.id != kept) {
        app.engine.end(live.session.id, &all_of_pool, EndReason::Revoked, origin, durability).await?;
    }
    Ok(())
}
