//! The departure of a member, by request or because its device takes a screen of its own.

use seatkeeper_core::{EndReason, Origin, PoolId, PoolKind, SessionId, TenantId};
use seatkeeper_registry::PoolView;
use uuid::Uuid;

use super::device::device_of;
use super::group_plan::GroupPlan;
use super::members::live_members;
use super::screen::{any, live_owner, own};
use super::{members_of, news};
use crate::app::App;
use crate::auth::Caller;
use crate::devices::device_request::DeviceRequest;
use crate::devices::fingerprint::fingerprint;
use crate::devices::in_use::LISTED_MAX;
use crate::devices::pool_of;
use crate::error::Error;
use crate::group_screen::is_screen;
use crate::settings::Durability;

/// The way in which a membership ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Departure {
    /// The member's own user ends the membership.
    Leaves,
    /// The subscriber removes a guest.
    Removed,
    /// The member watches other content than the host.
    Differs,
}

/// Ends a membership. The last member gives the screen back. A removal is on record before `depart` returns, because
/// the record refuses the guest's older join codes. Returns `Err(SessionNotFound)` for the removal of a guest that has
/// left by itself, because the guest's codes still count.
pub(super) async fn depart(
    app: &App,
    tenant: &TenantId,
    (group, member): (SessionId, SessionId),
    departure: Departure,
    origin: &Origin,
) -> Result<(), Error> {
    let durability = app.settings.devices.durability;
    let (reason, recorded) = match departure {
        Departure::Leaves => (EndReason::Released, durability),
        Departure::Removed => (EndReason::Revoked, Durability::Ledger),
        Departure::Differs => (EndReason::GroupContent, durability),
    };
    let has_ended = app.engine.end(member, &any(tenant, PoolKind::Group), reason, origin, recorded).await?;
    news::announce(app, tenant, group);
    give_back_empty_screen(app, tenant, group, origin).await?;
    if departure == Departure::Removed && !has_ended { Err(Error::SessionNotFound) } else { Ok(()) }
}

/// Gives the screen of a group back if the group has no members now: a fault may have come between the end of the last
/// member and the end of the screen. Does nothing unless `member` was a member, and the caller is the member's user or
/// the subscriber of the screen.
pub(super) async fn depart_again(
    app: &App,
    who: &Caller,
    (group, member): (SessionId, SessionId),
    origin: &Origin,
) -> Result<(), Error> {
    if !live_members(app, &who.tenant, group).await?.is_empty() {
        return Ok(());
    }
    let Some(owner) = live_owner(app, &who.tenant, group).await? else { return Ok(()) };
    let record = app.engine.record(member, &any(&who.tenant, PoolKind::Group)).await?;
    let was_member = record.is_some_and(|record| {
        let is_permitted = owner == who.user || record.session.users.contains(&who.user);
        is_permitted && record.pool == members_of(&who.tenant, group)
    });
    if was_member { give_back_empty_screen(app, &who.tenant, group, origin).await } else { Ok(()) }
}

/// Gives the screen of a group back after an operator has ended sessions of `pool`, if the pool is a group without members
/// now. Every other pool is left alone.
pub(crate) async fn give_back_screen_of(app: &App, pool: &PoolId, origin: &Origin) -> Result<(), Error> {
    let (PoolKind::Group, Ok(group)) = (pool.kind, pool.name.parse()) else { return Ok(()) };
    // The operator may have named a session of a single device.
    let live = app.engine.live_anywhere(group, &any(&pool.tenant, PoolKind::Subscriber)).await?;
    match live.filter(|live| is_screen(&live.session.holder)) {
        Some(_) => give_back_empty_screen(app, &pool.tenant, group, origin).await,
        None => Ok(()),
    }
}

async fn give_back_empty_screen(
    app: &App,
    tenant: &TenantId,
    group: SessionId,
    origin: &Origin,
) -> Result<(), Error> {
    if live_members(app, tenant, group).await?.is_empty() {
        let (screen, released) = (any(tenant, PoolKind::Subscriber), EndReason::Released);
        app.engine.end(group, &screen, released, origin, app.settings.devices.durability).await?;
    }
    Ok(())
}

/// Ends the memberships of a device that is about to take a screen of its own: the membership `named` by the device and,
/// on a plan with groups, the memberships in groups of the caller. Returns `true` if the groups of the caller were
/// searched. A group that cannot be read keeps the device as a member, and the claim goes on.
pub(in crate::devices) async fn leave_groups(
    request: &DeviceRequest,
    device_id: &str,
    named: Option<Uuid>,
) -> bool {
    let searched = leave_named_and_own(request, device_id, named).await;
    searched.unwrap_or_else(|error| {
        note_failure(&error);
        false
    })
}

/// Ends the memberships of a device whose claim was denied, in the groups whose screens are in `view`, the caller's pool.
/// Returns `true` if a membership has ended, so a further claim may find a free screen.
pub(in crate::devices) async fn leave_groups_in(
    request: &DeviceRequest,
    device_id: &str,
    view: Option<&PoolView>,
) -> bool {
    let ended = leave_each(request, device_id, &screens_in(view)).await;
    ended.unwrap_or_else(|error| {
        note_failure(&error);
        false
    })
}

fn note_failure(error: &Error) {
    tracing::debug!(
        causes = error.with_causes(),
        "looking for the groups of a device failed; a membership may go on beside the device's screen"
    );
}

async fn leave_named_and_own(
    request: &DeviceRequest,
    device_id: &str,
    named: Option<Uuid>,
) -> Result<bool, Error> {
    let DeviceRequest { app, who, .. } = request;
    leave_named(request, named).await?;
    if GroupPlan::find(app, &who.tenant, &who.user).await?.is_none() {
        return Ok(false);
    }
    let view = app.engine.view(&pool_of(&who.tenant, &who.user), LISTED_MAX).await?;
    leave_each(request, device_id, &screens_in(view.as_ref())).await?;
    Ok(true)
}

async fn leave_named(request: &DeviceRequest, named: Option<Uuid>) -> Result<(), Error> {
    let DeviceRequest { app, who, .. } = request;
    let Some(member) = named.and_then(|named| SessionId::try_from(named).ok()) else { return Ok(()) };
    let live = app.engine.live(member, &own(who, PoolKind::Group)).await?;
    match live.and_then(|live| live.pool.name.parse().ok()) {
        Some(group) => depart(app, &who.tenant, (group, member), Departure::Leaves, &request.origin()).await,
        None => Ok(()),
    }
}

/// Returns the screens of groups in a subscriber's pool.
fn screens_in(view: Option<&PoolView>) -> Vec<SessionId> {
    let sessions = view.into_iter().flat_map(|view| &view.sessions);
    sessions.filter(|live| is_screen(&live.session.holder)).map(|live| live.session.id).collect()
}

/// Ends the memberships of the device in `groups` of the caller. Returns `true` if a membership has ended.
async fn leave_each(request: &DeviceRequest, device_id: &str, groups: &[SessionId]) -> Result<bool, Error> {
    let DeviceRequest { app, who, meta, user_agent, .. } = request;
    let device = fingerprint(&device_of(&who.user, device_id), user_agent, meta.ip);
    let mut has_left = false;
    for &group in groups {
        let members = live_members(app, &who.tenant, group).await?;
        for live in members.iter().filter(|live| live.session.holder.device() == device.device()) {
            let member = (group, live.session.id);
            depart(app, &who.tenant, member, Departure::Leaves, &request.origin()).await?;
            has_left = true;
        }
    }
    Ok(has_left)
}
