//! List of the caller's screens in use.

use axum::Extension;
use axum::extract::State;
use seatkeeper_core::SessionId;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::in_use::{DeviceSession, in_use};
use super::pool_of;
use crate::app::App;
use crate::error::Error;
use crate::http::{Page, ParameterProblems, Problems, Query, Who};
use crate::regions::WithoutHome;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// Session of the caller, marked as `current` in the list.
    session_id: Option<Uuid>,
}

/// `GET /sessions`: lists the caller's live sessions, the most recent heartbeat first.
#[utoipa::path(
    get, path = "/api/v1/devices/sessions", tag = "devices", operation_id = "list_devices", security(("bearer" = [])),
    params(ListQuery),
    responses(
        Problems, ParameterProblems,
        (status = 200, body = Page<DeviceSession>)
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    who: Who,
    without_home: Option<Extension<WithoutHome>>,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<Page<DeviceSession>>, Error> {
    let without_home = without_home.map(|Extension(without_home)| without_home);
    let current = query.session_id.and_then(|uuid| SessionId::try_from(uuid).ok());
    let items = in_use(&app, &pool_of(&who.tenant, &who.user), current, None, without_home).await?;
    Ok(axum::Json(Page { items, next_cursor: None }))
}
