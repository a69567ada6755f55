//! Creation of a plan.

use axum::extract::State;
use axum::http::StatusCode;
use garde::Validate;
use seatkeeper_core::{GROUP_MEMBERS_MAX, Seats, TenantId, WhenFull};
use seatkeeper_ledger::plans::{GroupRules, GroupScope, NewPlan, PlanName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::PlanAnswer;
use crate::admin::fields::{PRICE_CENTS_MAX, name_of, named, ttl_field};
use crate::admin::idempotency::IdempotencyKey;
use crate::admin::versions::Versioned;
use crate::admin::write::AdminWrite;
use crate::app::App;
use crate::entitlements::DEVICES_MAX;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Body, BodyProblems, Meta, Problems};
use crate::problem::Problem;

/// A plan to create.
#[derive(Serialize, Deserialize, Validate, ToSchema)]
pub(crate) struct CreatePlan {
    /// Name of the plan, which never changes: 1 to 64 of `a` to `z`, `0` to `9`, `_` and `-`.
    #[garde(skip)]
    #[schema(value_type = String, min_length = 1, max_length = 64, pattern = "^[a-z0-9_-]+$")]
    name: PlanName,
    /// Number of a subscriber's devices that may watch at once: 0 to 1,000.
    #[garde(range(max = DEVICES_MAX))]
    #[schema(maximum = 1_000)]
    device_limit: u32,
    /// Price in cents, by default 0. The server stores the price and makes no use of it.
    #[garde(range(max = PRICE_CENTS_MAX))]
    #[schema(maximum = 1_000_000_000)]
    price_cents: Option<u32>,
    /// Rule for a device over the limit: `evict` (default) or `deny`.
    #[garde(skip)]
    #[schema(value_type = Option<String>, examples("evict", "deny"))]
    #[serde(default, deserialize_with = "named", serialize_with = "name_of")]
    when_full: Option<WhenFull>,
    /// Lifetime of a session after its last heartbeat, in seconds: 2 to 2,592,000; absent: the server's
    /// setting.
    #[garde(custom(ttl_field))]
    #[schema(minimum = 2, maximum = 2_592_000)]
    ttl_seconds: Option<u32>,
    /// Most devices that watch together on one screen: 0 to 8, by default 0: no groups.
    #[garde(range(max = GROUP_MEMBERS_MAX))]
    #[schema(maximum = 8)]
    group_members_max: Option<u32>,
    /// Users whose devices may join a group: `same_user` (default), or `any_user` of the tenant. The devices of guests need no
    /// screen of their own.
    #[garde(skip)]
    #[schema(value_type = Option<String>, examples("same_user", "any_user"))]
    #[serde(default, deserialize_with = "named")]
    group_scope: Option<GroupScope>,
    /// `true`: members report `content_id` with their heartbeats, and a member that watches other content than the host
    /// for 60 seconds leaves the group.
    #[garde(skip)]
    group_same_content: Option<bool>,
}

/// `POST /plans`: creates a plan.
#[utoipa::path(
    post, path = "/api/v1/admin/plans", tag = "admin", operation_id = "create_plan", security(("bearer" = [])),
    request_body = CreatePlan,
    params(("Idempotency-Key" = Option<String>, Header, description = "Repeats of one request under one key make one plan")),
    responses(
        Problems, AdminProblems, BodyProblems,
        (status = 201, body = PlanAnswer, headers(("ETag" = String, description = "The version, for `If-Match`"))),
        (status = 409, body = Problem, description = "plan-name-taken"),
        (status = 422, body = Problem, description = "invalid-request, idempotency-key-reused")
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    who: Admin,
    meta: Meta,
    key: IdempotencyKey,
    Body(ask): Body<CreatePlan>,
) -> Result<(StatusCode, Versioned<PlanAnswer>), Error> {
    let write = AdminWrite::with_key(&who, &meta, key, "create plan", &ask)?;
    let now = app.engine.now().await?;
    let written = app.ledger.create_plan(ask.plan(&who.tenant), write.at(now)).await;
    let plan = written.map_err(|error| Error::of_write(error, Error::PlanNotFound))?.value;
    Ok((StatusCode::CREATED, PlanAnswer::from_plan(&plan).versioned()))
}

impl CreatePlan {
    fn plan(self, tenant: &TenantId) -> NewPlan {
        NewPlan {
            tenant: tenant.clone(),
            name: self.name,
            device_limit: Seats(self.device_limit),
            price_cents: self.price_cents.unwrap_or_default(),
            when_full: self.when_full.unwrap_or(WhenFull::Evict),
            ttl_seconds: self.ttl_seconds,
            groups: GroupRules {
                members_max: self.group_members_max.unwrap_or_default(),
                scope: self.group_scope.unwrap_or_default(),
                same_content: self.group_same_content.unwrap_or_default(),
            },
        }
    }
}
