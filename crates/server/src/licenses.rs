//! Floating licenses: acquire, keep and release a seat. The pool is the license.

mod acquire;
mod events;
mod heartbeat;
mod list;
mod policy;
mod read;
mod release;
mod release_by_code;
mod token;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
pub(crate) use heartbeat::renewed;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(token::token))
        .routes(routes!(acquire::acquire))
        .routes(routes!(heartbeat::heartbeat, heartbeat::heartbeat_put))
        .routes(routes!(read::read, release::release))
        .routes(routes!(release_by_code::release_with_code))
        .routes(routes!(events::events))
        .routes(routes!(list::list))
}
