//! Queries of the audit log: admissions, ends, denials and changes of entitlements, each with its time and
//! actor.

mod csv;
mod record;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use seatkeeper_core::SessionId;
use seatkeeper_ledger::audit::{Action, AuditFilter};
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Page, ParameterProblems, Problems, Query, cursor_of, page_limit};
use crate::times::registry_time_of;
use record::RecordAnswer;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// `admitted`, `ended`, `denied`, `admitted_alone`, `ended_alone`, `license_created`, `license_updated`,
    /// `plan_created`, `plan_updated`, `subscription_created` or `subscription_updated`.
    action: Option<String>,
    /// The license's id, the subscriber's user, or the plan's name.
    pool: Option<String>,
    /// Session that began or ended.
    session: Option<Uuid>,
    /// Earliest time, inclusive (RFC 3339).
    from: Option<DateTime<Utc>>,
    /// Latest time, exclusive (RFC 3339).
    to: Option<DateTime<Utc>>,
    /// Value of `next_cursor` from the previous page.
    cursor: Option<String>,
    /// Highest number of records in a page: 1 to 500, by default 50.
    limit: Option<u32>,
    /// `json` (default) or `csv`. The header `Accept: text/csv` also selects CSV.
    #[param(value_type = Option<String>)]
    #[serde(default)]
    format: Format,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Format {
    #[default]
    Json,
    Csv,
}

/// `GET /audit`: lists the records that match every filter, the newest first.
#[utoipa::path(
    get, path = "/api/v1/admin/audit", tag = "admin", operation_id = "list_audit", security(("bearer" = [])),
    params(AuditQuery),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 200, description = "A page of records; as CSV, `x-next-cursor` has the cursor", content(
            (Page<RecordAnswer> = "application/json"),
            (String = "text/csv"),
        ))
    )
)]
pub(crate) async fn list(
    State(app): State<App>,
    who: Admin,
    headers: HeaderMap,
    Query(query): Query<AuditQuery>,
) -> Result<Response, Error> {
    let (limit, cursor) = (page_limit(query.limit)?, cursor_of(query.cursor.as_deref())?);
    let page = match query.filter()? {
        Some(filter) => {
            let page = app.ledger.audit(&who.tenant, &filter, cursor, limit).await.map_err(Error::Ledger)?;
            Page {
                items: page.items.iter().map(RecordAnswer::from_record).collect(),
                next_cursor: page.next.map(|id| id.to_string()),
            }
        }
        None => Page { items: Vec::new(), next_cursor: None },
    };
    if query.format == Format::Csv || asks_for_csv(&headers) {
        csv::answer(&page)
    } else {
        Ok(axum::Json(page).into_response())
    }
}

impl AuditQuery {
    /// Returns the filter for the ledger, or `None` if no record can match.
    fn filter(&self) -> Result<Option<AuditFilter>, Error> {
        let action = self.action.as_deref().map(str::parse::<Action>).transpose();
        let action = action.map_err(|_| Error::field("action", "is not an action of the log"))?;
        // No record names a session with an invalid id.
        let Ok(session) = self.session.map(SessionId::try_from).transpose() else { return Ok(None) };
        Ok(Some(AuditFilter {
            action,
            pool_kind: None,
            pool: self.pool.as_deref().map(Into::into),
            session,
            from: self.from.map(registry_time_of),
            to: self.to.map(registry_time_of),
        }))
    }
}

fn asks_for_csv(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_some_and(|accept| accept.split(',').any(|kind| kind.trim().starts_with("text/csv")))
}
