//! What holds a subscriber's screens.

use std::collections::HashMap;
use std::time::Duration;

use seatkeeper_core::{PoolId, SessionId};
use seatkeeper_ledger::sessions::SessionRecord;
use seatkeeper_registry::Live;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::entitlements::DEVICES_MAX;
use crate::error::Error;
use crate::times::text_of;

/// Sessions that are listed at most: no plan allows more.
pub(super) const LISTED_MAX: usize = DEVICES_MAX as usize;

/// The longest wait for the names of devices while the ledger is known to be away.
const NAMES_WAIT_MAX: Duration = Duration::from_millis(250);

/// A live session of a subscriber's.
#[derive(Serialize, ToSchema)]
pub(super) struct DeviceSession {
    session_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    device_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip: Option<String>,
    started_at: String,
    last_heartbeat_at: String,
    /// Whether it is the session that the caller named.
    current: bool,
}

/// The live sessions, the one that heartbeat last first. What the ledger alone knows of them (type, name,
/// address) is left out while it has no answer.
pub(super) async fn in_use(
    app: &App,
    pool: &PoolId,
    current: Option<SessionId>,
) -> Result<Vec<DeviceSession>, Error> {
    let Some(view) = app.engine.view(pool, LISTED_MAX).await? else {
        return Ok(Vec::new());
    };
    let records = records(app, pool).await.unwrap_or_else(|error| {
        tracing::warn!(causes = error.with_causes(), "devices are listed without their names");
        Vec::new()
    });
    let records: HashMap<_, _> = records.iter().map(|record| (record.session.id, record)).collect();
    let sessions = view.sessions.iter().rev();
    Ok(sessions
        .map(|live| DeviceSession::of(live, records.get(&live.session.id).copied(), current))
        .collect())
}

/// The sessions as they are on record. While the ledger is known to be away it is asked for a short time only.
async fn records(app: &App, pool: &PoolId) -> Result<Vec<SessionRecord>, Error> {
    let records = app.engine.live_records(pool, LISTED_MAX);
    let records = if app.engine.is_ledger_away() {
        tokio::time::timeout(NAMES_WAIT_MAX, records).await.map_err(|_| Error::TimedOut)?
    } else {
        records.await
    };
    Ok(records?)
}

impl DeviceSession {
    fn of(live: &Live, record: Option<&SessionRecord>, current: Option<SessionId>) -> Self {
        let told = record.map(|record| &record.particulars);
        let device = told.and_then(|told| told.device.as_ref());
        Self {
            session_id: live.session.id.as_uuid(),
            device_type: device.map(|device| device.kind.to_string()),
            device_name: device.and_then(|device| device.name.as_deref()).map(Into::into),
            ip: told.and_then(|told| told.ip).map(|ip| ip.to_string()),
            started_at: text_of(live.session.started),
            last_heartbeat_at: text_of(live.session.last_heartbeat),
            current: current == Some(live.session.id),
        }
    }
}
