//! A plan as JSON, for audit records and kept idempotent answers.

use chrono::{DateTime, Utc};
use seatkeeper_core::{Seats, TenantId};
use serde::{Deserialize, Serialize};

use super::{GroupRules, Plan, PlanName, PlanStatus};
use crate::row::corrupt;
use crate::{Error, times};

/// A plan's state after a change.
#[derive(Serialize, Deserialize)]
pub(super) struct State {
    name: PlanName,
    device_limit: u32,
    price_cents: u32,
    when_full: String,
    ttl_seconds: Option<u32>,
    #[serde(flatten)]
    groups: GroupRules,
    status: PlanStatus,
    version: u64,
    created_at: DateTime<Utc>,
    updated_at: DateTime<Utc>,
}

impl State {
    pub(super) fn from_plan(plan: &Plan) -> Self {
        Self {
            name: plan.name.clone(),
            device_limit: plan.device_limit.0,
            price_cents: plan.price_cents,
            when_full: plan.when_full.as_str().to_owned(),
            ttl_seconds: plan.ttl_seconds,
            groups: plan.groups,
            status: plan.status,
            version: plan.version,
            created_at: times::stored(plan.created_at),
            updated_at: times::stored(plan.updated_at),
        }
    }

    /// Restores the tenant's plan from the state.
    pub(super) fn restore(self, tenant: &TenantId) -> Result<Plan, Error> {
        Ok(Plan {
            tenant: tenant.clone(),
            name: self.name,
            device_limit: Seats(self.device_limit),
            price_cents: self.price_cents,
            when_full: self.when_full.parse().map_err(|source| corrupt("answer", source))?,
            ttl_seconds: self.ttl_seconds,
            groups: self.groups,
            status: self.status,
            version: self.version,
            created_at: times::from_stored(self.created_at),
            updated_at: times::from_stored(self.updated_at),
        })
    }
}
