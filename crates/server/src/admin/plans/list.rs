//! List of plans.

use axum::extract::State;
use seatkeeper_ledger::plans::PlanStatus;
use serde::Deserialize;
use utoipa::IntoParams;

use super::answer::PlanAnswer;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Page, ParameterProblems, Problems, Query, cursor_of, page_limit};

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PlansQuery {
    /// Status of the plans to list: `active` or `retired`.
    #[param(value_type = Option<String>)]
    status: Option<PlanStatus>,
    /// Value of `next_cursor` from the previous page.
    cursor: Option<String>,
    /// Highest number of plans in a page: 1 to 500, by default 50.
    limit: Option<u32>,
}

/// `GET /plans`: lists the tenant's plans by name. `basic`, `standard` and `premium` always exist.
#[utoipa::path(
    get, path = "/api/v1/admin/plans", tag = "admin", operation_id = "list_plans", security(("bearer" = [])),
    params(PlansQuery),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 200, body = Page<PlanAnswer>)
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    who: Admin,
    Query(query): Query<PlansQuery>,
) -> Result<axum::Json<Page<PlanAnswer>>, Error> {
    let (limit, cursor) = (page_limit(query.limit)?, cursor_of(query.cursor.as_deref())?);
    let now = app.engine.now().await?;
    let page = app.ledger.list_plans(&who.tenant, query.status, now, cursor.as_ref(), limit).await;
    let page = page.map_err(Error::Ledger)?;
    let items = page.items.iter().map(PlanAnswer::from_plan).collect();
    Ok(axum::Json(Page { items, next_cursor: page.next.map(String::from) }))
}
