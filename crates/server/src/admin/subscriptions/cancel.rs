//! Cancellation of a subscription.

use axum::extract::State;
use axum::http::StatusCode;
use seatkeeper_ledger::subscriptions::{SubscriptionChange, SubscriptionId};

use super::write::{Wanted, WriteThrough};
use crate::admin::versions::IfMatch;
use crate::admin::write::AdminWrite;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, IdPath, Meta, ParameterProblems, Problems, VersionProblems};
use crate::problem::Problem;

/// `DELETE /subscriptions/{subscription_id}`: cancels a subscription for good. No session ends at once; the
/// user's next admission applies the limit of a user without a subscription.
#[utoipa::path(
    delete, path = "/api/v1/admin/subscriptions/{subscription_id}", tag = "admin", operation_id = "cancel_subscription",
    security(("bearer" = [])),
    params(
        ("subscription_id" = Uuid, Path),
        ("If-Match" = Option<String>, Header, description = "The version that the change is based on, such as `\"3\"`: at another version nothing changes")
    ),
    responses(
        Problems, AdminProblems, ParameterProblems, VersionProblems,
        (status = 204, description = "The subscription is cancelled"),
        (status = 404, body = Problem, description = "subscription-not-found"),
        (status = 409, body = Problem, description = "home-elsewhere, subscription-over")
    )
)]
pub(crate) async fn cancel(
    State(app): State<App>,
    who: Admin,
    meta: Meta,
    version: IfMatch,
    IdPath(id): IdPath,
) -> Result<StatusCode, Error> {
    let change = SubscriptionChange { cancel: true, ..SubscriptionChange::default() };
    let write = WriteThrough {
        write: AdminWrite::new(&who, &meta).if_match(version),
        wanted: Wanted::Change(SubscriptionId(id), change),
    };
    write.run(app).await?;
    Ok(StatusCode::NO_CONTENT)
}
