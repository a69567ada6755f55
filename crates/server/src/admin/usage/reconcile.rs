//! Reconciliation of held, recorded and delivered usage.

use axum::extract::State;
use chrono::{DateTime, Utc};
use seatkeeper_core::{RegistryTime, Window};
use seatkeeper_ledger::usage::{TALLY_MAX, WINDOWS_RECONCILED_MAX};
use serde::Deserialize;
use utoipa::IntoParams;

use super::answer::ReconciliationAnswer;
use super::span_of;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, ParameterProblems, Problems, Query};

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SpanQuery {
    /// Windows that start at this time or later (RFC 3339).
    from: DateTime<Utc>,
    /// Windows that start before this time (RFC 3339).
    to: DateTime<Utc>,
}

/// `GET /usage/reconciliation`: compares the tenant's held, recorded and delivered usage.
#[utoipa::path(
    get, path = "/api/v1/admin/usage/reconciliation", tag = "admin", operation_id = "reconcile_usage",
    security(("bearer" = [])), params(SpanQuery),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 200, body = ReconciliationAnswer)
    )
)]
pub(crate) async fn reconcile(
    State(app): State<App>,
    who: Admin,
    Query(query): Query<SpanQuery>,
) -> Result<axum::Json<ReconciliationAnswer>, Error> {
    let span = span_of(Some(query.from), Some(query.to))?;
    let _alone = app.reconciliation.try_acquire().map_err(|_| Error::ReconciliationUnderWay)?;
    let books = match kept(&app, span).await? {
        Some(span) => app.ledger.reconcile_usage(&who.tenant, span).await.map_err(Error::Ledger)?,
        None => Some(Default::default()),
    };
    let books = books.ok_or_else(|| Error::field("to", too_much()))?;
    Ok(axum::Json(ReconciliationAnswer::from_books(&books)))
}

fn too_much() -> String {
    format!(
        "more than {WINDOWS_RECONCILED_MAX} windows since `from`, or more than {TALLY_MAX} if for each session \
         the windows are counted in which it was live: ask for less"
    )
}

/// Returns the part of `span` with complete history, beyond the reach of retention. Returns `None` if no part
/// remains.
async fn kept(app: &App, span: Window) -> Result<Option<Window>, Error> {
    let from = match app.settings.ledger.max_age() {
        Some(max_age) => app.engine.now().await? - max_age,
        None => RegistryTime::default(),
    };
    Ok(Window::new(span.starts().max(from), span.ends()))
}
