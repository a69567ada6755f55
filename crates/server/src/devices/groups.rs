//! Groups that watch together on one screen of a subscriber.
//!
//! The screen of a group is a session of the subscriber's pool like every other, so the plan counts a group as one.
//! The members are the sessions of a pool of their own, named by the id of the screen's session. A member is told that
//! it lives only after its heartbeat has renewed the screen as well. `docs/groups.md` has the protocol.

mod create;
mod device;
mod heartbeat;
mod join;
mod join_code;
mod leave;
mod members;
mod read;
mod screen;

use seatkeeper_core::{Policy, PoolId, PoolKind, SessionId, TenantId, WhenFull, WhenHeld, WhenNamed};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::entitlements::group_terms;
use crate::problem::{self, Problem};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create::create))
        .routes(routes!(join::join))
        .routes(routes!(heartbeat::heartbeat))
        .routes(routes!(read::read))
        .routes(routes!(leave::leave))
}

/// Returns the pool of a group's members. `screen` is the session of the group's screen, and the id of the group.
fn members_of(tenant: &TenantId, screen: SessionId) -> PoolId {
    PoolId::new(PoolKind::Group, tenant.clone(), screen.to_string())
}

/// Returns the policy of a group's pool: no member makes room for another, and a device that joins twice is one member.
fn policy(app: &App) -> Policy {
    let terms = group_terms(&app.settings.devices);
    Policy {
        terms: Some(terms),
        ttl_default: terms.ttl,
        when_named: WhenNamed::SameDevice,
        when_full: WhenFull::Deny,
        when_held: WhenHeld::Resume,
    }
}

/// Returns the denial if the settings allow no groups.
fn groups_off(app: &App) -> Option<Problem> {
    let detail = "`devices.group_members_max` is 0.";
    (app.settings.devices.group_members_max == 0).then(|| Problem::new(&problem::GROUPS_OFF, detail))
}
