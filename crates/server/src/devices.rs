//! API of the screens of a streaming subscriber. The pool is the subscriber, named by the token's user, and
//! every device in use holds a seat.

mod admit;
mod device_request;
mod events;
mod fingerprint;
mod groups;
mod heartbeat;
mod in_use;
mod list;
mod policy;
mod release_by_code;
mod revoke;
mod revoke_all;

use seatkeeper_core::{PoolId, PoolKind, TenantId, UserId};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
pub(crate) use groups::give_back_screen_of;
pub(crate) use policy::learn_terms;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(admit::admit, list::list, revoke_all::revoke_all))
        .routes(routes!(heartbeat::heartbeat))
        .routes(routes!(release_by_code::release_with_code))
        .routes(routes!(revoke::revoke))
        .routes(routes!(events::events))
        .merge(groups::routes())
}

/// Returns the pool of a subscriber.
pub(crate) fn pool_of(tenant: &TenantId, user: &UserId) -> PoolId {
    PoolId::new(PoolKind::Subscriber, tenant.clone(), user.as_str())
}
