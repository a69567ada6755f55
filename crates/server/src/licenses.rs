//! Floating licenses: take, keep and give back a seat. The pool is the license.

mod acquire;
mod entitlements;
mod heartbeat;
mod list;
mod pool;
mod read;
mod release;
mod session_answer;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
pub(crate) use entitlements::Entitlements;
pub(crate) use pool::{license_id_of, terms_of};
pub(crate) use session_answer::SessionAnswer;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(acquire::acquire))
        .routes(routes!(heartbeat::heartbeat, heartbeat::heartbeat_put))
        .routes(routes!(read::read, release::release))
        .routes(routes!(list::list))
}
