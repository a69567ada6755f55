//! Creation of a group from a device's session.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use garde::Validate;
use seatkeeper_core::{
    Bucket, Claim, EndReason, Origin, Policy, PoolKind, Replacement, SessionId, Tier, WhenFull, WhenHeld,
};
use seatkeeper_ledger::buckets::BucketMode;
use seatkeeper_registry::{Answer, Error as RegistryError, Granted, Request};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::device::JoiningDevice;
use super::entrance::{Entrance, Newcomer, enter};
use super::group_plan::{GroupPlan, groups_off};
use super::join_code::{self, JOIN_CODE_LIFETIME};
use super::members::{Join, Joined, Member, add_member, live_members};
use super::members_of;
use super::screen::any;
use crate::app::App;
use crate::auth::Caller;
use crate::devices::admit::DeviceType;
use crate::devices::device_request::DeviceRequest;
use crate::devices::in_use::LISTED_MAX;
use crate::devices::policy::policy_of;
use crate::devices::pool_of;
use crate::error::Error;
use crate::group_screen::screen_holder;
use crate::http::{BodyProblems, Problems, Unread, name_field, optional_name_field};
use crate::problem::{self, Problem};

/// A request to turn a device's session into the screen of a group.
#[derive(Deserialize, Validate, ToSchema)]
pub(super) struct CreateGroup {
    /// Live session of the device. The session ends, and the group's screen takes its place.
    #[garde(skip)]
    session_id: Uuid,
    /// Stable name of the device, which becomes the host.
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
    /// The content that the device watches. A plan with `group_same_content` demands the same of all members.
    #[garde(custom(optional_name_field))]
    #[schema(min_length = 1, max_length = 255)]
    content_id: Option<String>,
}

/// A new group.
#[derive(Serialize, ToSchema)]
pub(super) struct CreatedGroup {
    #[serde(flatten)]
    member: Member,
    /// Code with which other devices join.
    join_code: String,
    join_code_expires_in_seconds: u64,
}

/// `POST /groups`: turns the session of a device into a screen for several devices of the user. The same request again
/// returns the same group with a new join code.
#[utoipa::path(
    post, path = "/api/v1/devices/groups", tag = "devices", operation_id = "create_group", request_body = CreateGroup,
    security(("bearer" = [])),
    responses(
        Problems, BodyProblems,
        (status = 201, body = CreatedGroup, description = "The device is the host of the group"),
        (status = 403, body = Problem, description = "groups-off, group-full, group-content, devices-full"),
        (status = 404, body = Problem, description = "session-not-found"),
        (status = 429, body = Problem, description = "too-many-requests, group-joined-too-often")
    )
)]
pub(super) async fn create(request: DeviceRequest, body: Unread) -> Result<Response, Error> {
    request.limited(PoolKind::Group, create_group(&request, body)).await
}

async fn create_group(request: &DeviceRequest, body: Unread) -> Result<Response, Error> {
    let DeviceRequest { app, who, meta, .. } = request;
    let ask: CreateGroup = body.read(app).await?;
    let Some(plan) = GroupPlan::find(app, &who.tenant, &who.user).await? else {
        return Ok(groups_off().into_response());
    };
    let session = SessionId::try_from(ask.session_id).map_err(|_| Error::SessionNotFound)?;
    let device = (ask.device_id.as_str(), ask.device_type, ask.device_name.as_deref());
    let (device, origin) = (JoiningDevice::new(request, device), request.origin());
    let Some(group) = take_screen(app, who, session, &device, &origin).await? else {
        let detail = "The session's screen cannot be handed to the group now.";
        return Ok(Problem::new(&problem::DEVICES_FULL, detail).into_response());
    };
    let content = ask.content_id.as_deref();
    // The first device is the host, and a retry finds the device's membership. Any further device joins, by the checks of a
    // join.
    let members = live_members(app, &who.tenant, group).await?;
    let is_member = members.iter().any(|live| live.session.holder == device.holder);
    if !members.is_empty() && !is_member {
        // The subscriber's own device needs no code.
        let (device, note) = (&device.holder, &meta.standing);
        let newcomer = Newcomer { who, group, device, content, invited: None, note };
        match enter(app, newcomer).await? {
            Entrance::Open { .. } => {}
            Entrance::Closed(problem) => return Ok(problem.into_response()),
        }
    }
    let join = Join { who, group, plan: &plan, device: &device, content, invited: None, origin: &origin };
    Ok(match add_member(app, join).await? {
        Joined::Refused(problem) => problem.into_response(),
        Joined::Member(member) => {
            let now = app.engine.time_for(&members_of(&who.tenant, group)).await?;
            let join_code = join_code::sign(&app.release_codes, group, who, plan.rules.scope, now);
            let join_code_expires_in_seconds = JOIN_CODE_LIFETIME.as_secs_floor();
            let created = CreatedGroup { member: *member, join_code, join_code_expires_in_seconds };
            (StatusCode::CREATED, axum::Json(created)).into_response()
        }
    })
}

/// Replaces `session` by the session of the group's screen. Returns `None` if the claim is denied.
///
/// The registry ends `session` and admits the screen in one step, so a group takes one screen at every instant. The
/// screen's holder is derived from `session`, so a retry finds the screen. A screen that stands is not claimed again: its
/// members, who keep it alive, would not hear of a TTL that has become shorter.
async fn take_screen(
    app: &App,
    who: &Caller,
    session: SessionId,
    device: &JoiningDevice,
    origin: &Origin,
) -> Result<Option<SessionId>, Error> {
    let (pool, holder) = (pool_of(&who.tenant, &who.user), screen_holder(session));
    // The members live in a pool that no node serves alone, so no session is given up for a group without members.
    app.engine.check_sees_all(&pool)?;
    let view = app.engine.view(&pool, LISTED_MAX).await?;
    let live = || view.iter().flat_map(|view| &view.sessions).map(|live| &live.session);
    let screen = live().find(|live| live.holder == holder);
    if !live().any(|live| live.id == session) {
        return screen.map(|screen| Some(screen.id)).ok_or(Error::SessionNotFound);
    }
    check_groups_served(app)?;
    let claim = Claim {
        holder,
        user: who.user.clone(),
        tier: Tier::default(),
        session: None,
        replace: Some(Replacement { session, is_handed_over: true }),
    };
    let policy = Policy {
        when_full: WhenFull::Deny,
        when_held: WhenHeld::Resume,
        ..policy_of(app, &who.tenant, &who.user).await
    };
    let request =
        Request { pool: &pool, claim: &claim, policy: &policy, origin, particulars: &device.particulars };
    let durability = app.settings.devices.durability;
    let claimed = app.engine.claim(request, durability).await?;
    let Answer::Granted { how, session: screen, ended } = claimed.answer else { return Ok(None) };
    let screen = screen.session.id;
    if how == Granted::Admitted && !ended.iter().any(|(ended, _)| *ended == session) {
        // `session` has ended since the look, so nothing was handed over: the screen took a free seat.
        let subscribers = any(&who.tenant, PoolKind::Subscriber);
        app.engine.end(screen, &subscribers, EndReason::Released, origin, durability).await?;
        return Err(Error::SessionNotFound);
    }
    Ok(Some(screen))
}

/// Returns `Err` unless groups are served in every bucket. The bucket of the members follows from the screen's id, and
/// the registry makes the id in the step that ends the device's session. So any bucket may be needed, and the session
/// must not end for a group that nobody serves.
fn check_groups_served(app: &App) -> Result<(), Error> {
    app.engine.is_ready()?;
    let mode = |bucket| app.engine.registries().mode_for(PoolKind::Group, app.engine.mode(bucket));
    match Bucket::all().find(|bucket| mode(*bucket) == BucketMode::Deny) {
        Some(bucket) => Err(Error::Registry(RegistryError::NotServing { bucket })),
        None => Ok(()),
    }
}
