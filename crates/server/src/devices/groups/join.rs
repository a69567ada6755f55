//! Joining a group by its code.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::HeaderMap;
use axum::response::{IntoResponse, Response};
use garde::Validate;
use seatkeeper_core::PoolKind;
use serde::Deserialize;
use utoipa::ToSchema;

use super::device::JoiningDevice;
use super::groups_off;
use super::join_code;
use super::members::{Joined, Member, add_member, code_refused};
use crate::app::App;
use crate::auth::Caller;
use crate::devices::admit::DeviceType;
use crate::error::Error;
use crate::http::{BodyProblems, Meta, Problems, Unread, Who, name_field, optional_name_field};
use crate::problem::Problem;

/// A request to join a group.
#[derive(Deserialize, Validate, ToSchema)]
pub(super) struct JoinGroup {
    /// The code of the group.
    #[garde(custom(name_field))]
    #[schema(min_length = 1, max_length = 255)]
    join_code: String,
    /// Stable name of the device.
    #[garde(custom(name_field))]
    #[schema(min_length = 1, max_length = 255)]
    device_id: String,
    /// Type of the device.
    #[garde(skip)]
    device_type: DeviceType,
    /// The owner's name for the device.
    #[garde(custom(optional_name_field))]
    #[schema(min_length = 1, max_length = 255)]
    device_name: Option<String>,
}

/// `POST /groups/join`: makes a device of the same user a member of a group. A member that joins again keeps its session.
#[utoipa::path(
    post, path = "/api/v1/devices/groups/join", tag = "devices", operation_id = "join_group", request_body = JoinGroup,
    security(("bearer" = [])),
    responses(
        Problems, BodyProblems,
        (status = 201, body = Member, description = "The device watches with the group"),
        (status = 403, body = Problem, description = "groups-off, group-full, join-code-refused"),
        (status = 429, body = Problem, description = "too-many-requests")
    )
)]
pub(super) async fn join(
    State(app): State<App>,
    who: Who,
    meta: Meta,
    headers: HeaderMap,
    body: Unread,
) -> Result<Response, Error> {
    let joined = join_group(&app, &who, &meta, &headers, body);
    app.limits.acquire(PoolKind::Group, &who, &meta.standing, joined).await
}

async fn join_group(
    app: &App,
    who: &Caller,
    meta: &Meta,
    headers: &HeaderMap,
    body: Unread,
) -> Result<Response, Error> {
    let ask: JoinGroup = body.read(app).await?;
    if let Some(off) = groups_off(app) {
        return Ok(off.into_response());
    }
    let Some(group) = join_code::check(&app.release_codes, &ask.join_code, who) else {
        return Ok(code_refused().into_response());
    };
    let device = (ask.device_id.as_str(), ask.device_type, ask.device_name.as_deref());
    let device = JoiningDevice::new(device, headers, meta);
    Ok(match add_member(app, who, group, &device, &meta.origin(who.as_user())).await? {
        Joined::Member(member) => (StatusCode::CREATED, axum::Json(*member)).into_response(),
        Joined::Refused(problem) => problem.into_response(),
    })
}
