//! Joining a group by its code.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use garde::Validate;
use seatkeeper_core::PoolKind;
use serde::Deserialize;
use utoipa::ToSchema;

use super::device::JoiningDevice;
use super::entrance::{Entrance, Newcomer, enter};
use super::join_code;
use super::members::{Join, Joined, Member, add_member, code_refused};
use super::members_of;
use crate::devices::admit::DeviceType;
use crate::devices::device_request::DeviceRequest;
use crate::error::Error;
use crate::http::{BodyProblems, Problems, Unread, name_field, optional_name_field};
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
    /// The content that the device is about to watch. A plan with `group_same_content` demands the host's.
    #[garde(custom(optional_name_field))]
    #[schema(min_length = 1, max_length = 255)]
    content_id: Option<String>,
}

/// `POST /groups/join`: makes a device a member of a group. The device belongs to the host's user, or on a plan with
/// `group_scope` `any_user` to any user of the tenant. A member that joins again keeps its session.
#[utoipa::path(
    post, path = "/api/v1/devices/groups/join", tag = "devices", operation_id = "join_group", request_body = JoinGroup,
    security(("bearer" = [])),
    responses(
        Problems, BodyProblems,
        (status = 201, body = Member, description = "The device watches with the group"),
        (status = 403, body = Problem, description = "groups-off, group-full, group-content, join-code-refused"),
        (status = 429, body = Problem, description = "too-many-requests, group-joined-too-often")
    )
)]
pub(super) async fn join(request: DeviceRequest, body: Unread) -> Result<Response, Error> {
    request.limited(PoolKind::Group, join_group(&request, body)).await
}

async fn join_group(request: &DeviceRequest, body: Unread) -> Result<Response, Error> {
    let DeviceRequest { app, who, meta, .. } = request;
    let ask: JoinGroup = body.read(app).await?;
    let Some(code) = join_code::check(&app.release_codes, &ask.join_code, who) else {
        return Ok(code_refused().into_response());
    };
    let group = code.group;
    if code.has_expired(app.engine.time_for(&members_of(&who.tenant, group)).await?) {
        return Ok(code_refused().into_response());
    }
    let content = ask.content_id.as_deref();
    let device = (ask.device_id.as_str(), ask.device_type, ask.device_name.as_deref());
    let (device, origin) = (JoiningDevice::new(request, device), request.origin());
    let invited = Some(code.made());
    let newcomer = Newcomer { who, group, device: &device.holder, content, invited, note: &meta.standing };
    let (plan, invited) = match enter(app, newcomer).await? {
        Entrance::Open { plan, guest_invited } => (plan, guest_invited),
        Entrance::Closed(problem) => return Ok(problem.into_response()),
    };
    let join = Join { who, group, plan: &plan, device: &device, content, invited, origin: &origin };
    Ok(match add_member(app, join).await? {
        Joined::Member(member) => (StatusCode::CREATED, axum::Json(*member)).into_response(),
        Joined::Refused(problem) => problem.into_response(),
    })
}
