use seatkeeper_ledger::plans::{Plan, PlanName, PlanStatus};
use serde::Serialize;
use utoipa::ToSchema;

use crate::times::text_of;

/// A plan as operators see it.
#[derive(Serialize, ToSchema)]
pub(crate) struct PlanAnswer {
    #[schema(value_type = String)]
    name: PlanName,
    /// How many devices of a subscriber may watch at once.
    device_limit: u32,
    price_cents: u32,
    /// What happens to a device too many: `evict` ends the stalest session, `deny` refuses the newcomer.
    when_full: &'static str,
    /// How long a session lives after its last heartbeat; absent: the server's setting.
    ttl_seconds: Option<u32>,
    #[schema(value_type = String, examples("active", "retired"))]
    status: PlanStatus,
    /// Rises with every change; 0: the plan is as it was built in.
    version: u64,
    created_at: String,
    updated_at: String,
}

impl PlanAnswer {
    pub(super) fn of(plan: &Plan) -> Self {
        Self {
            name: plan.name.clone(),
            device_limit: plan.device_limit.0,
            price_cents: plan.price_cents,
            when_full: plan.when_full.as_str(),
            ttl_seconds: plan.ttl_seconds,
            status: plan.status,
            version: plan.version,
            created_at: text_of(plan.created_at),
            updated_at: text_of(plan.updated_at),
        }
    }
}
