//! A subscription on record.

use std::fmt;
use std::str::FromStr;

use seatkeeper_core::{PoolId, PoolKind, RegistryTime, TenantId, UserId, named_enum};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::terms::Phase;
use crate::Error;
use crate::database::Row;
use crate::plans::PlanName;
use crate::row::Fields;

/// A subscription's id: a UUID of version 7, so ids sort by creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubscriptionId(pub Uuid);

impl fmt::Display for SubscriptionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl FromStr for SubscriptionId {
    type Err = uuid::Error;
    fn from_str(text: &str) -> Result<Self, uuid::Error> {
        Uuid::try_parse(text).map(Self)
    }
}

named_enum! {
    /// The status of a subscription.
    #[derive(PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum SubscriptionStatus else "not a status of a subscription" {
        /// Active between its start and its end.
        Active = "active",
        /// Cancelled before its end.
        Cancelled = "cancelled",
        /// Past its end.
        Expired = "expired",
    }
}

/// A user's plan between a start and an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The subscription's id.
    pub id: SubscriptionId,
    /// The user's tenant.
    pub tenant: TenantId,
    /// The subscribed user, immutable.
    pub user: UserId,
    /// The plan.
    pub plan: PlanName,
    /// The status last written. A subscription past its end may still be `Active` here; see
    /// [`Subscription::status_at`].
    pub status: SubscriptionStatus,
    /// The start.
    pub starts_at: RegistryTime,
    /// The end, later than the start; `None` for ever.
    pub ends_at: Option<RegistryTime>,
    /// The number of the subscription's last change among the tenant's changes.
    pub version: u64,
    /// The time of the creation.
    pub created_at: RegistryTime,
    /// The time of the last change.
    pub updated_at: RegistryTime,
}

impl Subscription {
    /// Returns the status at `now`, with the end considered.
    pub fn status_at(&self, now: RegistryTime) -> SubscriptionStatus {
        match (self.status, Phase::at(self.status, self.starts_at, self.ends_at, now)) {
            (SubscriptionStatus::Active, Phase::Over) => SubscriptionStatus::Expired,
            (status, _) => status,
        }
    }

    /// Checks the dates of a subscription written at `at`.
    pub(super) fn check_dates(&self, at: RegistryTime) -> Result<(), Error> {
        match self.ends_at {
            Some(ends_at) if ends_at <= self.starts_at => Err(Error::EndsBeforeStart),
            // An end in the past is refused: sessions live after the end would contradict the record.
            Some(ends_at) if ends_at <= at => Err(Error::EndsInThePast),
            Some(_) | None => Ok(()),
        }
    }

    /// Returns the pool of the user's devices.
    pub fn pool(&self) -> PoolId {
        PoolId::new(PoolKind::Subscriber, self.tenant.clone(), self.user.as_str())
    }

    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            id: SubscriptionId(fields.value("id")?),
            tenant: TenantId::new(fields.value::<&str>("tenant_id")?),
            user: UserId::new(fields.value::<&str>("user_id")?),
            plan: fields.named("plan")?,
            status: fields.named("status")?,
            starts_at: fields.time("starts_at")?,
            ends_at: fields.time_maybe("ends_at")?,
            version: fields.whole("version")?,
            created_at: fields.time("created_at")?,
            updated_at: fields.time("updated_at")?,
        })
    }
}
