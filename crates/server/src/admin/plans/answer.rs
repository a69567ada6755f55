//! JSON form of a plan.

use seatkeeper_ledger::plans::{GroupScope, Plan, PlanName, PlanStatus};
use serde::Serialize;
use utoipa::ToSchema;

use crate::admin::versions::Versioned;
use crate::times::text_of;

/// A plan as operators see it.
#[derive(Serialize, ToSchema)]
pub(crate) struct PlanAnswer {
    #[schema(value_type = String)]
    name: PlanName,
    /// Number of a subscriber's devices that may watch at once.
    device_limit: u32,
    price_cents: u32,
    /// Rule for a device over the limit: `evict` ends the stalest session, `deny` refuses the newcomer.
    when_full: &'static str,
    /// Lifetime of a session after its last heartbeat, in seconds; absent: the server's setting.
    ttl_seconds: Option<u32>,
    /// Most devices that watch together on one screen; 0: no groups.
    group_members_max: u32,
    /// Users whose devices may join a group.
    #[schema(value_type = String, examples("same_user", "any_user"))]
    group_scope: GroupScope,
    /// `true`: a member that watches other content than the host leaves the group.
    group_same_content: bool,
    #[schema(value_type = String, examples("active", "retired"))]
    status: PlanStatus,
    /// Version, raised by every change; 0 for an unchanged built-in plan.
    version: u64,
    created_at: String,
    updated_at: String,
}

impl PlanAnswer {
    pub(super) fn from_plan(plan: &Plan) -> Self {
        Self {
            name: plan.name.clone(),
            device_limit: plan.device_limit.0,
            price_cents: plan.price_cents,
            when_full: plan.when_full.as_str(),
            ttl_seconds: plan.ttl_seconds,
            group_members_max: plan.groups.members_max,
            group_scope: plan.groups.scope,
            group_same_content: plan.groups.same_content,
            status: plan.status,
            version: plan.version,
            created_at: text_of(plan.created_at),
            updated_at: text_of(plan.updated_at),
        }
    }

    /// Returns the answer with the version as `ETag`.
    pub(super) fn versioned(self) -> Versioned<Self> {
        Versioned { version: self.version, answer: self }
    }
}
