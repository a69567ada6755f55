//! A plan as it stands.

use std::str::FromStr;

use seatkeeper_core::{PoolId, PoolKind, RegistryTime, Seats, TenantId, WhenFull};
use serde::{Deserialize, Serialize};

use super::PlanName;
use crate::Error;
use crate::database::Row;
use crate::row::Fields;

/// The plans that every tenant has from its beginning, at version 0, and how many devices they allow:
/// the same as in the tables' trigger.
pub(crate) const BUILT_IN: [(&str, u32); 3] = [("basic", 1), ("standard", 2), ("premium", 4)];

/// Whether a plan can be subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanStatus {
    /// It can.
    Active,
    /// No longer; who has it keeps it.
    Retired,
}

impl PlanStatus {
    /// The status's name in records and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Retired => "retired",
        }
    }
}

/// A text that names no status of a plan.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a status of a plan")]
pub struct NotAPlanStatus;

impl FromStr for PlanStatus {
    type Err = NotAPlanStatus;
    fn from_str(text: &str) -> Result<Self, NotAPlanStatus> {
        [Self::Active, Self::Retired].into_iter().find(|status| status.as_str() == text).ok_or(NotAPlanStatus)
    }
}

/// What subscribers may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The tenant that offers it.
    pub tenant: TenantId,
    /// Its name. It never changes.
    pub name: PlanName,
    /// How many devices of a subscriber may watch at once.
    pub device_limit: Seats,
    /// What it costs; nothing is done with it here.
    pub price_cents: u32,
    /// What happens to a device too many.
    pub when_full: WhenFull,
    /// How long a session lives after its last heartbeat, at least 1; none: the default.
    pub ttl_seconds: Option<u32>,
    /// Whether it can be subscribed to.
    pub status: PlanStatus,
    /// The number of its last change among its tenant's; 0: it is as it was built in.
    pub version: u64,
    /// When it was made.
    pub created_at: RegistryTime,
    /// When it was last changed.
    pub updated_at: RegistryTime,
}

impl Plan {
    /// What its records name as their pool.
    pub(super) fn pool(&self) -> PoolId {
        PoolId::new(PoolKind::Subscriber, self.tenant.clone(), self.name.as_str())
    }

    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            tenant: TenantId::new(fields.value::<&str>("tenant_id")?),
            name: fields.named("name")?,
            device_limit: Seats(fields.small("device_limit")?),
            price_cents: fields.small("price_cents")?,
            when_full: fields.named("when_full")?,
            ttl_seconds: fields.number_maybe("ttl_seconds")?,
            status: fields.named("status")?,
            version: fields.whole("version")?,
            created_at: fields.time("created_at")?,
            updated_at: fields.time("updated_at")?,
        })
    }
}
