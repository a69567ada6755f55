//! List of usage windows.

use axum::extract::State;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use utoipa::IntoParams;

use super::answer::WindowAnswer;
use super::span_of;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Page, ParameterProblems, Problems, Query, cursor_of, page_limit};
use crate::times::{registry_time_of, text_of};

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct WindowsQuery {
    /// Windows that start at this time or later (RFC 3339).
    from: Option<DateTime<Utc>>,
    /// Windows that start before this time (RFC 3339).
    to: Option<DateTime<Utc>>,
    /// Value of `next_cursor` from the previous page.
    cursor: Option<String>,
    /// Highest number of windows in a page: 1 to 500, by default 50.
    limit: Option<u32>,
}

/// `GET /usage`: lists the windows with metered sessions of the tenant, the newest first.
#[utoipa::path(
    get, path = "/api/v1/admin/usage", tag = "admin", operation_id = "list_usage", security(("bearer" = [])),
    params(WindowsQuery),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 200, body = Page<WindowAnswer>)
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    who: Admin,
    Query(query): Query<WindowsQuery>,
) -> Result<axum::Json<Page<WindowAnswer>>, Error> {
    let limit = page_limit(query.limit)?;
    let cursor = cursor_of::<DateTime<Utc>>(query.cursor.as_deref())?.map(registry_time_of);
    let span = span_of(query.from, query.to)?;
    let page = app.ledger.usage_windows(&who.tenant, span, cursor, limit).await.map_err(Error::Ledger)?;
    Ok(axum::Json(Page {
        items: page.items.iter().map(WindowAnswer::from_window).collect(),
        next_cursor: page.next.map(text_of),
    }))
}
