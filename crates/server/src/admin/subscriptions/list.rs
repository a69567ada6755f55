//! List of subscriptions.

use axum::extract::State;
use seatkeeper_core::UserId;
use seatkeeper_ledger::plans::PlanName;
use seatkeeper_ledger::subscriptions::{SubscriptionFilter, SubscriptionStatus};
use serde::Deserialize;
use utoipa::IntoParams;

use super::answer::SubscriptionAnswer;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Page, ParameterProblems, Problems, Query, cursor_of, page_limit};

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SubscriptionsQuery {
    /// User whose subscriptions to list.
    user: Option<String>,
    /// Plan of the subscriptions to list.
    #[param(value_type = Option<String>)]
    plan: Option<PlanName>,
    /// Status of the subscriptions to list: `active`, `cancelled` or `expired`.
    #[param(value_type = Option<String>)]
    status: Option<SubscriptionStatus>,
    /// Value of `next_cursor` from the previous page.
    cursor: Option<String>,
    /// Highest number of subscriptions in a page: 1 to 500, by default 50.
    limit: Option<u32>,
}

/// `GET /subscriptions`: lists the tenant's subscriptions that match every filter, the oldest first.
#[utoipa::path(
    get, path = "/api/v1/admin/subscriptions", tag = "admin", operation_id = "list_subscriptions",
    security(("bearer" = [])), params(SubscriptionsQuery),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 200, body = Page<SubscriptionAnswer>)
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    who: Admin,
    Query(query): Query<SubscriptionsQuery>,
) -> Result<axum::Json<Page<SubscriptionAnswer>>, Error> {
    let (limit, cursor) = (page_limit(query.limit)?, cursor_of(query.cursor.as_deref())?);
    let filter =
        SubscriptionFilter { user: query.user.map(UserId::new), plan: query.plan, status: query.status };
    let now = app.engine.now().await?;
    let page = app.ledger.list_subscriptions(&who.tenant, &filter, now, cursor, limit).await;
    let page = page.map_err(Error::Ledger)?;
    let items = page.items.iter().map(|subscription| SubscriptionAnswer::at(now, subscription)).collect();
    Ok(axum::Json(Page { items, next_cursor: page.next.map(|id| id.to_string()) }))
}
