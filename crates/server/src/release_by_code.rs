//! Releases a session for a caller without a token, by the session's release code.

use axum::http::StatusCode;
use garde::Validate;
use seatkeeper_core::{Actor, Authority, EndReason, PoolKind, Reach, SessionId};
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::error::Error;
use crate::http::{Meta, Unread};
use crate::release_codes::{CodeHolder, RELEASE_CODE_CHARS_MAX};
use crate::settings::Durability;

/// A session to release, with its code.
#[derive(Deserialize, Validate, ToSchema)]
#[garde(allow_unvalidated)]
pub(crate) struct ReleaseByCode {
    session_id: Uuid,
    /// The `release_code` of the session's latest grant.
    #[garde(length(chars, max = RELEASE_CODE_CHARS_MAX))]
    #[schema(max_length = 600)]
    release_code: String,
}

/// Releases a session of a kind if the code is right. The caller learns nothing of the session: 204 is also the answer to
/// a wrong code, and to the right code of an ended session.
pub(crate) async fn release_by_code(
    app: &App,
    meta: &Meta,
    body: Unread,
    (kind, durability): (PoolKind, Durability),
) -> Result<StatusCode, Error> {
    // Before the body is read: a client that guesses codes costs no more than this.
    app.limits.release_by_address(meta.ip, &meta.standing).await?;
    let ask: ReleaseByCode = body.read(app).await?;
    let Ok(id) = SessionId::try_from(ask.session_id) else { return Ok(StatusCode::NO_CONTENT) };
    if let Some(CodeHolder { tenant, user }) = app.release_codes.check((kind, id), &ask.release_code) {
        let origin = meta.origin(Actor::User(user.clone()));
        let holder = Authority::new(tenant, Reach::Own(user)).through(kind);
        app.engine.end(id, &holder, EndReason::Released, &origin, durability).await?;
    }
    Ok(StatusCode::NO_CONTENT)
}
