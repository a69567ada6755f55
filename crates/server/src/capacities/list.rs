//! Look-up of a user's session on a capacity.

use axum::extract::State;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::{NonNilUuid, Uuid};

use super::answer::CapacitySession;
use super::pool::{Capacity, authority};
use crate::app::App;
use crate::error::Error;
use crate::http::{Page, ParameterProblems, Problems, Query, Who};

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
#[serde(rename_all = "camelCase")]
pub(super) struct ListQuery {
    /// User who has the session; not the nil UUID.
    #[param(value_type = Uuid)]
    user_object_id: NonNilUuid,
    /// Capacity of the session; not the nil UUID.
    #[param(value_type = Uuid)]
    capacity_id: NonNilUuid,
    /// Tenant of the user; absent: the token's tenant.
    #[param(value_type = Option<Uuid>)]
    tenant_object_id: Option<NonNilUuid>,
}

/// `GET /sessions`: finds the live session of a user on a capacity, as a list of at most one. A caller
/// without the admin scope finds only a session that the caller acquired.
#[utoipa::path(
    get, path = "/api/v1/capacities/sessions", tag = "capacities", operation_id = "find_capacity_session",
    security(("bearer" = [])), params(ListQuery),
    responses(
        Problems, ParameterProblems,
        (status = 200, body = Page<CapacitySession>)
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    who: Who,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<Page<CapacitySession>>, Error> {
    let items = match query.capacity(&who) {
        Some(capacity) => live_on(&app, &who, capacity).await?,
        // A tenant that is not a UUID has no capacities.
        None => Vec::new(),
    };
    Ok(axum::Json(Page { items, next_cursor: None }))
}

impl ListQuery {
    fn capacity(&self, who: &Who) -> Option<Capacity> {
        let own = || Uuid::try_parse(who.tenant.as_str()).ok();
        let tenant = self.tenant_object_id.map(NonNilUuid::get).or_else(own)?;
        Some(Capacity { tenant, user: self.user_object_id.get(), capacity: self.capacity_id.get() })
    }
}

async fn live_on(app: &App, who: &Who, capacity: Capacity) -> Result<Vec<CapacitySession>, Error> {
    let pool = capacity.pool();
    let who = authority(who);
    let view = app.engine.view(&pool, 1).await?;
    // A crash could still undo a session without a record, so the answer waits for the record.
    app.engine.on_record(pool.kind, pool.bucket()).await?;
    let sessions = view.map(|view| view.sessions).unwrap_or_default();
    let seen = sessions.iter().filter(|live| who.covers(&pool, &live.session));
    Ok(seen.map(|live| CapacitySession::live(capacity, live)).collect())
}
