//! Releases a seat by its release code.

use axum::extract::State;
use axum::http::StatusCode;
use seatkeeper_core::PoolKind;

use crate::app::App;
use crate::error::Error;
use crate::http::{BodyProblems, Meta, Unread};
use crate::problem::Problem;
use crate::release_by_code::{ReleaseByCode, release_by_code};

/// `POST /sessions/release`: gives a seat back without a token, by the `release_code` of the session. For pages that
/// close: `navigator.sendBeacon` sends the body as `text/plain`, without a preflight.
#[utoipa::path(
    post, path = "/api/v1/licenses/sessions/release", tag = "licenses", operation_id = "release_license_by_code",
    request_body(content((ReleaseByCode = "application/json"), (ReleaseByCode = "text/plain"))),
    responses(
        BodyProblems,
        (status = 204, description = "The seat is free, or the code was not of a live session"),
        (status = 429, body = Problem, description = "too-many-requests"),
        (status = 500, body = Problem, description = "internal"),
        (status = 503, body = Problem, description = "unavailable")
    )
)]
pub(super) async fn release_with_code(
    State(app): State<App>,
    meta: Meta,
    body: Unread,
) -> Result<StatusCode, Error> {
    let durability = app.settings.licenses.durability;
    release_by_code(&app, &meta, body, (PoolKind::License, durability)).await
}
