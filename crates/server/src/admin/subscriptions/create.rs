//! Creation of a subscription.

use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use garde::Validate;
use seatkeeper_core::{TenantId, UserId};
use seatkeeper_ledger::plans::PlanName;
use seatkeeper_ledger::subscriptions::NewSubscription;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::SubscriptionAnswer;
use super::write::{Wanted, WriteThrough};
use crate::admin::fields::{date_field, time_of};
use crate::admin::idempotency::IdempotencyKey;
use crate::admin::versions::Versioned;
use crate::admin::write::AdminWrite;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Body, BodyProblems, Meta, Problems, name_field};
use crate::problem::Problem;

/// A subscription to create.
#[derive(Serialize, Deserialize, Validate, ToSchema)]
pub(crate) struct CreateSubscription {
    /// User who will have the subscription, as named by tokens.
    #[garde(custom(name_field))]
    #[schema(min_length = 1, max_length = 255)]
    user: String,
    /// A plan of the tenant that is not retired.
    #[garde(skip)]
    #[schema(value_type = String, min_length = 1, max_length = 64)]
    plan: PlanName,
    /// Start of the subscription; absent: the time of the request.
    #[garde(custom(date_field))]
    starts_at: Option<DateTime<Utc>>,
    /// End of the subscription, later than the start and than now; absent: never.
    #[garde(custom(date_field))]
    ends_at: Option<DateTime<Utc>>,
}

/// `POST /subscriptions`: creates a subscription. A user has at most one active subscription.
#[utoipa::path(
    post, path = "/api/v1/admin/subscriptions", tag = "admin", operation_id = "create_subscription",
    security(("bearer" = [])), request_body = CreateSubscription,
    params(("Idempotency-Key" = Option<String>, Header, description = "Repeats of one request under one key make one subscription")),
    responses(
        Problems, AdminProblems, BodyProblems,
        (status = 201, body = SubscriptionAnswer, headers(("ETag" = String, description = "The version, for `If-Match`"))),
        (status = 409, body = Problem, description = "subscription-exists, plan-retired"),
        (status = 422, body = Problem, description = "invalid-request, idempotency-key-reused")
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    who: Admin,
    meta: Meta,
    key: IdempotencyKey,
    Body(ask): Body<CreateSubscription>,
) -> Result<(StatusCode, Versioned<SubscriptionAnswer>), Error> {
    let write = WriteThrough {
        write: AdminWrite::with_key(&who, &meta, key, "create subscription", &ask)?,
        wanted: Wanted::New(ask.subscription(&who.tenant)),
    };
    Ok((StatusCode::CREATED, write.run(app).await?.versioned()))
}

impl CreateSubscription {
    fn subscription(self, tenant: &TenantId) -> NewSubscription {
        NewSubscription {
            tenant: tenant.clone(),
            user: UserId::new(self.user),
            plan: self.plan,
            starts_at: time_of(self.starts_at),
            ends_at: time_of(self.ends_at),
        }
    }
}
