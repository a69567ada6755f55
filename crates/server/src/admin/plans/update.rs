//! Change of a plan.

use axum::extract::State;
use garde::Validate;
use seatkeeper_core::{GROUP_MEMBERS_MAX, Seats, WhenFull};
use seatkeeper_ledger::plans::{GroupScope, PlanChange, PlanStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::PlanAnswer;
use super::apply::Apply;
use super::path::PlanPath;
use crate::admin::fields::{PRICE_CENTS_MAX, name_of, named, present, ttl_change_field};
use crate::admin::idempotency::IdempotencyKey;
use crate::admin::versions::{IfMatch, Versioned};
use crate::admin::write::AdminWrite;
use crate::app::App;
use crate::entitlements::DEVICES_MAX;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Body, BodyProblems, Meta, Problems, VersionProblems};
use crate::problem::Problem;

/// The changes of a plan. Absent fields stay unchanged; `null` removes the TTL.
#[derive(Serialize, Deserialize, Validate, ToSchema)]
pub(crate) struct UpdatePlan {
    /// Number of a subscriber's devices that may watch at once.
    #[garde(range(max = DEVICES_MAX))]
    #[schema(maximum = 1_000)]
    device_limit: Option<u32>,
    /// Price in cents.
    #[garde(range(max = PRICE_CENTS_MAX))]
    #[schema(maximum = 1_000_000_000)]
    price_cents: Option<u32>,
    /// Rule for a device over the limit: `evict` or `deny`.
    #[garde(skip)]
    #[schema(value_type = Option<String>, examples("evict", "deny"))]
    #[serde(default, deserialize_with = "named", serialize_with = "name_of")]
    when_full: Option<WhenFull>,
    /// Lifetime of a session after its last heartbeat, in seconds.
    #[garde(custom(ttl_change_field))]
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, minimum = 2, maximum = 2_592_000)]
    ttl_seconds: Option<Option<u32>>,
    /// Most devices that watch together on one screen: 0 to 8. A smaller number counts for new groups.
    #[garde(range(max = GROUP_MEMBERS_MAX))]
    #[schema(maximum = 8)]
    group_members_max: Option<u32>,
    /// Users whose devices may join a group: `same_user`, or `any_user` of the tenant. The devices of guests need no
    /// screen of their own.
    #[garde(skip)]
    #[schema(value_type = Option<String>, examples("same_user", "any_user"))]
    #[serde(default, deserialize_with = "named")]
    group_scope: Option<GroupScope>,
    /// `true`: members report `content_id` with their heartbeats, and a member that watches other content than the host
    /// for 60 seconds leaves the group.
    #[garde(skip)]
    group_same_content: Option<bool>,
    /// `active` or `retired`. A retired plan takes no new subscription; existing subscriptions keep the plan.
    #[garde(skip)]
    #[schema(value_type = Option<String>, examples("active", "retired"))]
    #[serde(default, deserialize_with = "named")]
    status: Option<PlanStatus>,
}

/// `PATCH /plans/{plan}`: changes a plan. The change applies from each subscriber's next admission on.
#[utoipa::path(
    patch, path = "/api/v1/admin/plans/{plan}", tag = "admin", operation_id = "update_plan",
    security(("bearer" = [])), request_body = UpdatePlan,
    params(
        ("plan" = String, Path, description = "The plan's name"),
        ("Idempotency-Key" = Option<String>, Header, description = "Repeats of one request under one key change it once"),
        ("If-Match" = Option<String>, Header, description = "The version that the change is based on, such as `\"3\"`: at another version nothing changes")
    ),
    responses(
        Problems, AdminProblems, BodyProblems, VersionProblems,
        (status = 200, body = PlanAnswer, headers(("ETag" = String, description = "The version, for `If-Match`"))),
        (status = 404, body = Problem, description = "plan-not-found"),
        (status = 422, body = Problem, description = "invalid-request, idempotency-key-reused")
    )
)]
pub(crate) async fn update(
    State(app): State<App>,
    who: Admin,
    meta: Meta,
    key: IdempotencyKey,
    version: IfMatch,
    PlanPath(name): PlanPath,
    Body(ask): Body<UpdatePlan>,
) -> Result<Versioned<PlanAnswer>, Error> {
    let apply = Apply {
        write: AdminWrite::with_key(&who, &meta, key, &format!("update plan {name}"), &ask)?
            .if_match(version),
        name,
        change: ask.change(),
    };
    Ok(PlanAnswer::from_plan(&apply.run(app).await?).versioned())
}

impl UpdatePlan {
    fn change(self) -> PlanChange {
        PlanChange {
            device_limit: self.device_limit.map(Seats),
            price_cents: self.price_cents,
            when_full: self.when_full,
            ttl_seconds: self.ttl_seconds,
            group_members_max: self.group_members_max,
            group_scope: self.group_scope,
            group_same_content: self.group_same_content,
            status: self.status,
        }
    }
}
