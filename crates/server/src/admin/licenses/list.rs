//! List of licenses.

use axum::extract::State;
use seatkeeper_ledger::licenses::Status;
use serde::Deserialize;
use utoipa::IntoParams;

use super::answer::LicenseAnswer;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Page, ParameterProblems, Problems, Query, cursor_of, page_limit};

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListQuery {
    /// Status of the licenses to list: `active`, `suspended` or `revoked`.
    #[param(value_type = Option<String>)]
    status: Option<Status>,
    /// Value of `next_cursor` from the previous page.
    cursor: Option<String>,
    /// Highest number of licenses in a page: 1 to 500, by default 50.
    limit: Option<u32>,
}

/// `GET /licenses`: lists the tenant's licenses, the oldest first.
#[utoipa::path(
    get, path = "/api/v1/admin/licenses", tag = "admin", operation_id = "list_licenses", security(("bearer" = [])),
    params(ListQuery),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 200, body = Page<LicenseAnswer>)
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    who: Admin,
    Query(query): Query<ListQuery>,
) -> Result<axum::Json<Page<LicenseAnswer>>, Error> {
    let (limit, cursor) = (page_limit(query.limit)?, cursor_of(query.cursor.as_deref())?);
    let page =
        app.ledger.list_licenses(&who.tenant, query.status, cursor, limit).await.map_err(Error::Ledger)?;
    let mut items = Vec::with_capacity(page.items.len());
    for license in &page.items {
        items.push(LicenseAnswer::read(&app, license).await);
    }
    Ok(axum::Json(Page { items, next_cursor: page.next.map(|id| id.to_string()) }))
}
