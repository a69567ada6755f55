//! JSON form of a license.

use seatkeeper_ledger::licenses::{Clients, CountPer, License, Reacquire, Status};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::error::Error;
use crate::times::text_of;

/// A license as operators see it.
#[derive(Serialize, ToSchema)]
pub(crate) struct LicenseAnswer {
    license_id: Uuid,
    license_key: String,
    max_seats: u32,
    /// Number of seats in use.
    seats_used: u32,
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
    /// backup of the database raises the version to a multiple of 2³².
    version: u64,
    created_at: String,
    updated_at: String,
}

impl LicenseAnswer {
    /// Builds the answer, with the number of seats in use.
    pub(super) async fn new(app: &App, license: &License) -> Result<Self, Error> {
        let view = app.engine.view(&license.pool(), 0).await?;
        Ok(Self {
            license_id: license.id.0,
            license_key: license.key.reveal().into(),
            max_seats: license.max_seats.0,
            seats_used: view.map_or(0, |view| view.live),
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
        })
    }
}
