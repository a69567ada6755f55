//! The operators' API: licenses, sessions and the audit log of the caller's tenant, and the server's jobs.

mod audit;
mod jobs;
mod licenses;
mod sessions;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(licenses::list::list, licenses::create::create))
        .routes(routes!(licenses::read::read, licenses::update::update, licenses::revoke::revoke))
        .routes(routes!(sessions::search::search, sessions::revoke_all::revoke_all))
        .routes(routes!(sessions::revoke::revoke))
        .routes(routes!(audit::list))
        .routes(routes!(jobs::list::list))
        .routes(routes!(jobs::runs::runs))
        .routes(routes!(jobs::run_now::run_now))
}
