//! List of usage batches.

use std::fmt;
use std::str::FromStr;

use axum::extract::State;
use seatkeeper_core::RegistryTime;
use seatkeeper_ledger::usage::{BatchPosition, BatchState};
use serde::Deserialize;
use utoipa::IntoParams;

use super::answer::BatchAnswer;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Page, ParameterProblems, Problems, Query, cursor_of, page_limit};

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BatchesQuery {
    /// State of the batches to list: `pending`, `delivered` or `dead`; absent: every state.
    state: Option<String>,
    /// Value of `next_cursor` from the previous page.
    cursor: Option<String>,
    /// Highest number of batches in a page: 1 to 500, by default 50.
    limit: Option<u32>,
}

/// `GET /usage/batches`: lists the batches of the tenant's records, from the newest window to the oldest.
#[utoipa::path(
    get, path = "/api/v1/admin/usage/batches", tag = "admin", operation_id = "list_usage_batches",
    security(("bearer" = [])), params(BatchesQuery),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 200, body = Page<BatchAnswer>)
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    who: Admin,
    Query(query): Query<BatchesQuery>,
) -> Result<axum::Json<Page<BatchAnswer>>, Error> {
    let limit = page_limit(query.limit)?;
    let cursor = cursor_of::<Cursor>(query.cursor.as_deref())?.map(|cursor| cursor.0);
    let state = query.state.as_deref().map(str::parse::<BatchState>).transpose();
    let state = state.map_err(|_| Error::field("state", "must be `pending`, `delivered` or `dead`"))?;
    let page = app.ledger.usage_batches(&who.tenant, state, cursor, limit).await.map_err(Error::Ledger)?;
    Ok(axum::Json(Page {
        items: page.items.into_iter().map(BatchAnswer::from_batch).collect(),
        next_cursor: page.next.map(|last| Cursor(last).to_string()),
    }))
}

/// A cursor of the list: the position of a page's last batch, with the window's start in milliseconds. A cursor outlives
/// the batch, which retention may delete.
struct Cursor(BatchPosition);

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.0.window_starts.as_millis(), self.0.number)
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let (window_starts, number) = text.split_once('.').ok_or(InvalidCursor)?;
        let window_starts = window_starts.parse().map_err(|_| InvalidCursor)?;
        let window_starts = RegistryTime::from_millis(window_starts);
        let number = number.parse().map_err(|_| InvalidCursor)?;
        Ok(Self(BatchPosition { window_starts, number }))
    }
}

/// A text that is no cursor of the list.
struct InvalidCursor;
