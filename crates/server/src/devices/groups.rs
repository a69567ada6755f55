//! Groups that watch together on one screen of a subscriber.
//!
//! The screen of a group is a session of the subscriber's pool like every other, so the plan counts a group as one.
//! The members are the sessions of a pool of their own, named by the id of the screen's session. A member is told that
//! it lives only after its heartbeat has renewed the screen as well. `docs/groups.md` has the protocol.

mod content;
mod create;
mod departure;
mod device;
mod entrance;
mod events;
mod group_plan;
mod heartbeat;
mod join;
mod join_code;
mod leave;
mod member_diff;
mod members;
mod news;
mod read;
mod screen;

use seatkeeper_core::{PoolId, PoolKind, SessionId, TenantId};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
pub(crate) use departure::give_back_screen_of;
pub(super) use departure::{leave_groups, leave_groups_in};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(create::create))
        .routes(routes!(join::join))
        .routes(routes!(heartbeat::heartbeat))
        .routes(routes!(read::read))
        .routes(routes!(leave::leave))
        .routes(routes!(events::events))
}

/// Returns the pool of a group's members. `screen` is the session of the group's screen, and the id of the group.
fn members_of(tenant: &TenantId, screen: SessionId) -> PoolId {
    PoolId::new(PoolKind::Group, tenant.clone(), screen.to_string())
}
