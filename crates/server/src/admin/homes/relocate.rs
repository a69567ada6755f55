//! The move of a subscriber's home to another region.

use axum::extract::State;
use axum::http::StatusCode;
use garde::Validate;
use seatkeeper_core::UserId;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::admin::write::carried_through;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Body, BodyProblems, Problems, name_field};
use crate::problem::Problem;
use crate::relocation::Moved;

/// A move of a home.
#[derive(Deserialize, Validate, ToSchema)]
pub(crate) struct MoveHome {
    /// The subscriber, as named by tokens.
    #[garde(custom(name_field))]
    #[schema(min_length = 1, max_length = 255)]
    user: String,
    /// The target: the name or the number of a region.
    #[garde(custom(name_field))]
    #[schema(min_length = 1, max_length = 255)]
    to: String,
}

/// The home of a subscriber.
#[derive(Serialize, ToSchema)]
pub(crate) struct HomeMoved {
    user: String,
    /// The number of the home region.
    region: u8,
    /// The number of moves of the home plus 1.
    version: u64,
    /// `true` while the move is under way: the job `moves` carries the move on.
    moving: bool,
}

/// `POST /homes/moves`: moves a subscriber's home, with its live sessions, to another region.
#[utoipa::path(
    post, path = "/api/v1/admin/homes/moves", tag = "admin", operation_id = "move_home", security(("bearer" = [])),
    request_body = MoveHome,
    responses(
        Problems, AdminProblems, BodyProblems,
        (status = 200, body = HomeMoved, description = "The home is in the target"),
        (status = 202, body = HomeMoved, description = "The move is under way"),
        (status = 409, body = Problem, description = "home-not-movable")
    )
)]
pub(crate) async fn relocate(
    State(app): State<App>,
    who: Admin,
    Body(ask): Body<MoveHome>,
) -> Result<(StatusCode, axum::Json<HomeMoved>), Error> {
    let (tenant, user) = (who.tenant.clone(), UserId::new(ask.user.as_str()));
    let Some(to) = app.regions.as_ref().and_then(|regions| regions.named(&ask.to)) else {
        return Err(Error::field("to", "must be a region of the settings"));
    };
    let Moved { home, is_done } = carried_through(app, move |app| async move {
        let mover = app.mover.clone().ok_or(Error::NoSuchRoute)?;
        mover.move_home(&tenant, &user, to).await
    })
    .await?;
    let status = if is_done { StatusCode::OK } else { StatusCode::ACCEPTED };
    let moved =
        HomeMoved { user: ask.user, region: home.region.number(), version: home.version, moving: !is_done };
    Ok((status, axum::Json(moved)))
}
