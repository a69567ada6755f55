//! The capacities API, as used by the demo's analyst.

use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use crate::api_client::{ApiClient, Error};

/// A user, and the capacity wanted by the user.
#[derive(Debug)]
pub(super) struct Analyst {
    tenant: &'static str,
    user: Uuid,
    capacity: Uuid,
}

/// The analyst's session.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Taken {
    pub session_kind: u8,
    pub session_end_utc: String,
    pub status: String,
}

const SESSIONS: &str = "/api/v1/capacities/sessions";

impl Analyst {
    pub(super) fn new(tenant: &'static str) -> Self {
        Self { tenant, user: Uuid::new_v4(), capacity: Uuid::new_v4() }
    }

    /// Asks for the capacity in a tier.
    pub(super) async fn take(&self, api: &ApiClient, tier: u8) -> Result<Taken, Error> {
        let ask = json!({
            "userObjectId": self.user,
            "tenantObjectId": self.tenant,
            "capacityId": self.capacity,
            "sessionKind": tier,
        });
        api.read(SESSIONS, api.put(SESSIONS, ask).await?)
    }
}
