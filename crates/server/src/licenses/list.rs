//! Lists a license's live sessions.

use axum::extract::State;
use seatkeeper_core::{PoolId, PoolKind, Reach};
use seatkeeper_ledger::licenses::LicenseId;
use seatkeeper_ledger::sessions::SessionFilter;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::error::Error;
use crate::held_sessions::held_sessions;
use crate::http::{IdPath, Page, ParameterProblems, Problems, Query, Who, cursor_of, page_limit};
use crate::problem::Problem;
use crate::session_answer::SessionAnswer;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ListQuery {
    /// The `next_cursor` of the previous page.
    cursor: Option<String>,
    /// Maximum of sessions in the page: 1 to 500, by default 50.
    limit: Option<u32>,
}

/// `GET /{license_id}/sessions`: the live sessions of a license. An admin sees all sessions, a user the
/// user's own.
#[utoipa::path(
    get, path = "/api/v1/licenses/{license_id}/sessions", tag = "licenses", security(("bearer" = [])),
    params(("license_id" = Uuid, Path), ListQuery),
    responses(
        Problems, ParameterProblems,
        (status = 200, body = Page<SessionAnswer>),
        (status = 404, body = Problem, description = "license-not-found")
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    who: Who,
    IdPath(license): IdPath,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<Page<SessionAnswer>>, Error> {
    let limit = page_limit(query.limit)?;
    let cursor = cursor_of(query.cursor.as_deref())?;
    let license = LicenseId(license);
    let found = app.ledger.license(&who.tenant, license).await.map_err(Error::Ledger)?;
    found.ok_or(Error::LicenseNotFound)?;
    let who = who.authority().through(PoolKind::License);
    let pool = PoolId::new(PoolKind::License, who.tenant.clone(), license.to_string());
    if let Some(held) = held_sessions(&app, &pool, &who, cursor, limit).await? {
        return Ok(axum::Json(held));
    }
    let filter = SessionFilter {
        pool_kind: Some(PoolKind::License),
        pool: Some(license.to_string().into()),
        user: match &who.reach {
            Reach::Own(user) => Some(user.clone()),
            Reach::Tenant => None,
        },
        live: Some(true),
        ..SessionFilter::default()
    };
    // A pool too large for the registry's view is listed from the ledger, page by page.
    let page =
        app.ledger.search_sessions(&who.tenant, &filter, cursor, limit).await.map_err(Error::Ledger)?;
    let mut items = Vec::with_capacity(page.items.len());
    for record in &page.items {
        // The registry is ahead of the ledger: sessions that are over in the registry are left out.
        if let Some(live) = app.engine.live(record.session.id, &who).await? {
            items.push(SessionAnswer::new(record, Some(&live), &who));
        }
    }
    Ok(axum::Json(Page { items, next_cursor: page.next.map(|id| id.to_string()) }))
}
