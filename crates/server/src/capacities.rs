//! API of capacities for analytics users. A pool is a pair of user and capacity, with at most one session, in
//! a tier.

mod answer;
mod events;
mod list;
mod policy;
mod pool;
mod put;
mod read;
mod release;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
pub(crate) use pool::pool_name;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(put::put, list::list))
        .routes(routes!(read::read, release::release))
        .routes(routes!(events::events))
}
