//! Wire format of an invalidation message: JSON, with a variant for each kind of change. An unreadable
//! message invalidates everything, so nodes of different versions stay correct.

use seatkeeper_core::{SessionId, TenantId};
use seatkeeper_ledger::licenses::LicenseId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::entitlements::Changed;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Message {
    Subscriber { tenant: String, user: String },
    Tenant { tenant: String },
    License { tenant: String, license_id: Uuid },
    Group { tenant: String, group_id: Uuid },
    Anything,
}

impl Message {
    pub(super) fn from_change(changed: &Changed) -> Self {
        let text = |tenant: &TenantId| tenant.as_str().to_owned();
        match changed {
            Changed::Subscriber(tenant, user) => {
                Self::Subscriber { tenant: text(tenant), user: user.as_str().to_owned() }
            }
            Changed::Tenant(tenant) => Self::Tenant { tenant: text(tenant) },
            Changed::License(tenant, LicenseId(license_id)) => {
                Self::License { tenant: text(tenant), license_id: *license_id }
            }
            Changed::Group(tenant, group) => Self::Group { tenant: text(tenant), group_id: group.as_uuid() },
            Changed::Anything => Self::Anything,
        }
    }

    pub(super) fn to_text(&self) -> String {
        serde_json::json!(self).to_string()
    }

    /// Parses a message. An unreadable message returns `Changed::Anything`, because its scope is unknown.
    pub(super) fn read(text: &[u8]) -> Changed {
        match serde_json::from_slice(text).unwrap_or(Self::Anything) {
            Self::Subscriber { tenant, user } => {
                Changed::Subscriber(TenantId::new(tenant), user.as_str().into())
            }
            Self::Tenant { tenant } => Changed::Tenant(TenantId::new(tenant)),
            Self::License { tenant, license_id } => {
                Changed::License(TenantId::new(tenant), LicenseId(license_id))
            }
            Self::Group { tenant, group_id } => match SessionId::try_from(group_id) {
                Ok(group) => Changed::Group(TenantId::new(tenant), group),
                Err(_) => Changed::Anything,
            },
            Self::Anything => Changed::Anything,
        }
    }
}
