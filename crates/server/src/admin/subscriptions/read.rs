//! Look-up of a subscription.

use axum::extract::State;
use seatkeeper_ledger::subscriptions::SubscriptionId;

use super::answer::SubscriptionAnswer;
use crate::admin::versions::Versioned;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, IdPath, ParameterProblems, Problems};
use crate::problem::Problem;

/// `GET /subscriptions/{subscription_id}`: returns a subscription.
#[utoipa::path(
    get, path = "/api/v1/admin/subscriptions/{subscription_id}", tag = "admin", operation_id = "read_subscription",
    security(("bearer" = [])), params(("subscription_id" = Uuid, Path)),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 200, body = SubscriptionAnswer, headers(("ETag" = String, description = "The version, for `If-Match`"))),
        (status = 404, body = Problem, description = "subscription-not-found")
    )
)]
pub(crate) async fn read(
    State(app): State<App>,
    who: Admin,
    IdPath(id): IdPath,
) -> Result<Versioned<SubscriptionAnswer>, Error> {
    let found = app.ledger.subscription(&who.tenant, SubscriptionId(id)).await.map_err(Error::Ledger)?;
    let subscription = found.ok_or(Error::SubscriptionNotFound)?;
    Ok(SubscriptionAnswer::at(app.engine.now().await?, &subscription).versioned())
}
