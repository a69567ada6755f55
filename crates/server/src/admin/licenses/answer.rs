//! JSON form of a license.

use seatkeeper_ledger::licenses::{Clients, CountPer, License, Reacquire, Status};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::admin::versions::Versioned;
use crate::app::App;
use crate::times::text_of;

/// A license as operators see it.
#[derive(Serialize, ToSchema)]
pub(crate) struct LicenseAnswer {
    license_id: Uuid,
    license_key: String,
    max_seats: u32,
    /// Number of seats in use. `null` while no registry serves the license, so that the number is unknown.
    seats_used: Option<u32>,
    #[schema(value_type = String, examples("active", "suspended", "revoked"))]
    status: Status,
    /// End of the license; absent: never.
    expires_at: Option<String>,
    #[schema(value_type = String, examples("machine", "user", "process"))]
    count_per: CountPer,
    #[schema(value_type = String, examples("token", "key"))]
    clients: Clients,
    /// Lifetime of a session after its last heartbeat, in seconds; absent: the server's setting.
    ttl_seconds: Option<u32>,
    /// Time that a client goes on without a session while the server is unreachable, in seconds.
    grace_seconds: u32,
    #[schema(value_type = String, examples("expired_only", "never"))]
    reacquire: Reacquire,
    /// Contact for more seats or time.
    contact: Option<String>,
    /// Version: 1 at first, raised by 1 with each change. The first change after a promotion of a standby or a restored
    /// backup of the database raises the version by far, to milliseconds since 1970.
    version: u64,
    created_at: String,
    updated_at: String,
}

impl LicenseAnswer {
    /// Builds the answer, and reads the number of seats in use.
    pub(super) async fn read(app: &App, license: &License) -> Self {
        Self::new(license, seats_used(app, license).await)
    }

    /// Builds the answer of a license with this number of seats in use.
    pub(super) fn new(license: &License, seats_used: Option<u32>) -> Self {
        Self {
            license_id: license.id.0,
            license_key: license.key.reveal().into(),
            max_seats: license.max_seats.0,
            seats_used,
            status: license.status,
            expires_at: license.expires_at.map(text_of),
            count_per: license.count_per,
            clients: license.clients,
            ttl_seconds: license.ttl_seconds,
            grace_seconds: license.grace_seconds,
            reacquire: license.reacquire,
            contact: license.contact.clone(),
            version: license.version,
            created_at: text_of(license.created_at),
            updated_at: text_of(license.updated_at),
        }
    }

    /// Returns the answer with the version as `ETag`.
    pub(super) fn versioned(self) -> Versioned<Self> {
        Versioned { version: self.version, answer: self }
    }
}

/// Returns the number of seats in use; `None` if the registry does not answer. An admin who only reads the license's terms,
/// or has changed them, needs no registry.
async fn seats_used(app: &App, license: &License) -> Option<u32> {
    match app.engine.view(&license.pool(), 0).await {
        Ok(view) => Some(view.map_or(0, |view| view.live)),
        Err(error) => {
            let causes = seatkeeper_engine::with_causes(&error);
            tracing::debug!(license_id = %license.id.0, %causes, "the seats in use are unknown: left out of the answer");
            None
        }
    }
}
