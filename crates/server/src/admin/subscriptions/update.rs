//! Change of a subscription.

use axum::extract::State;
use chrono::{DateTime, Utc};
use garde::Validate;
use seatkeeper_ledger::plans::PlanName;
use seatkeeper_ledger::subscriptions::{SubscriptionChange, SubscriptionId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::SubscriptionAnswer;
use super::write::{Wanted, WriteThrough};
use crate::admin::fields::{date_change_field, date_field, present, time_of};
use crate::admin::idempotency::IdempotencyKey;
use crate::admin::versions::{IfMatch, Versioned};
use crate::admin::write::AdminWrite;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Body, BodyProblems, IdPath, Meta, Problems, VersionProblems};
use crate::problem::Problem;

/// The changes of a subscription. Absent fields stay unchanged; `null` removes the end.
#[derive(Serialize, Deserialize, Validate, ToSchema)]
pub(crate) struct UpdateSubscription {
    /// New plan.
    #[garde(skip)]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 64)]
    plan: Option<PlanName>,
    /// Start of the subscription.
    #[garde(custom(date_field))]
    starts_at: Option<DateTime<Utc>>,
    /// End of the subscription, later than the start and than now.
    #[garde(custom(date_change_field))]
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<DateTime<Utc>>)]
    ends_at: Option<Option<DateTime<Utc>>>,
}

/// `PATCH /subscriptions/{subscription_id}`: changes a subscription. The change applies from the user's next
/// admission on, and ends no session at once.
#[utoipa::path(
    patch, path = "/api/v1/admin/subscriptions/{subscription_id}", tag = "admin", operation_id = "update_subscription",
    security(("bearer" = [])), request_body = UpdateSubscription,
    params(
        ("subscription_id" = Uuid, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "Repeats of one request under one key change it once"),
        ("If-Match" = Option<String>, Header, description = "The version that the change is based on, such as `\"3\"`: at another version nothing changes")
    ),
    responses(
        Problems, AdminProblems, BodyProblems, VersionProblems,
        (status = 200, body = SubscriptionAnswer, headers(("ETag" = String, description = "The version, for `If-Match`"))),
        (status = 404, body = Problem, description = "subscription-not-found"),
        (status = 409, body = Problem, description = "home-elsewhere, subscription-over, plan-retired"),
        (status = 422, body = Problem, description = "invalid-request, idempotency-key-reused")
    )
)]
pub(crate) async fn update(
    State(app): State<App>,
    who: Admin,
    meta: Meta,
    key: IdempotencyKey,
    version: IfMatch,
    IdPath(id): IdPath,
    Body(ask): Body<UpdateSubscription>,
) -> Result<Versioned<SubscriptionAnswer>, Error> {
    let write = WriteThrough {
        write: AdminWrite::with_key(&who, &meta, key, &format!("update subscription {id}"), &ask)?
            .if_match(version),
        wanted: Wanted::Change(SubscriptionId(id), ask.change()),
    };
    Ok(write.run(app).await?.versioned())
}

impl UpdateSubscription {
    fn change(self) -> SubscriptionChange {
        SubscriptionChange {
            plan: self.plan,
            starts_at: time_of(self.starts_at),
            ends_at: self.ends_at.map(time_of),
            cancel: false,
        }
    }
}
