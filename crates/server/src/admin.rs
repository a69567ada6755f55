//! API of operators: licenses, plans, subscriptions, sessions, usage and the audit log of the caller's
//! tenant, and the server's jobs. Every handler takes an `Admin`, so that a caller without the admin scope is
//! refused.

mod audit;
mod fields;
mod homes;
mod idempotency;
mod jobs;
mod licenses;
mod plans;
mod sessions;
mod subscriptions;
mod usage;
mod versions;
mod write;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use sessions::revoke_all::PoolQuery;

use crate::app::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(licenses::list::list, licenses::create::create))
        .routes(routes!(licenses::read::read, licenses::update::update, licenses::revoke::revoke))
        .routes(routes!(plans::list::list, plans::create::create))
        .routes(routes!(plans::read::read, plans::update::update, plans::retire::retire))
        .routes(routes!(subscriptions::list::list, subscriptions::create::create))
        .routes(routes!(
            subscriptions::read::read,
            subscriptions::update::update,
            subscriptions::cancel::cancel
        ))
        .routes(routes!(sessions::search::search, sessions::revoke_all::revoke_all))
        .routes(routes!(sessions::read::read, sessions::revoke::revoke))
        .routes(routes!(homes::relocate::relocate))
        .routes(routes!(homes::regions::list))
        .routes(routes!(audit::list))
        .routes(routes!(jobs::list::list))
        .routes(routes!(jobs::runs::runs))
        .routes(routes!(jobs::run_now::run_now))
        .routes(routes!(usage::windows::list))
        .routes(routes!(usage::batches::list))
        .routes(routes!(usage::send::send))
        .routes(routes!(usage::send::send_all))
        .routes(routes!(usage::reconcile::reconcile))
}
