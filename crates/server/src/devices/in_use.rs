//! The sessions that hold a subscriber's screens.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use seatkeeper_core::{PoolId, SessionId, UserId};
use seatkeeper_ledger::sessions::SessionRecord;
use seatkeeper_registry::{Live, PoolView};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::entitlements::DEVICES_MAX;
use crate::error::Error;
use crate::regions::WithoutHome;
use crate::times::text_of;

/// Longest list of sessions. No plan allows more devices.
pub(super) const LISTED_MAX: usize = DEVICES_MAX as usize;

/// Longest wait for the names of devices while the ledger is known to be away.
const NAMES_WAIT_MAX: Duration = Duration::from_millis(250);

/// A live session of a subscriber.
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
    /// `true` for the session named by the caller.
    current: bool,
}

/// Returns the live sessions, the most recent heartbeat first. Type, name and address of a device come from
/// the ledger, and are absent while the ledger does not answer. With `reader`, they are absent for devices of other
/// users. With `without_home`, the list has the sessions in place of the home, without further details.
pub(super) async fn in_use(
    app: &App,
    pool: &PoolId,
    current: Option<SessionId>,
    reader: Option<&UserId>,
    without_home: Option<WithoutHome>,
) -> Result<Vec<DeviceSession>, Error> {
    let view = view_in_use(app, pool, without_home).await?;
    Ok(listed(app, pool, view.as_ref(), current, reader).await)
}

/// Reads the pool of a subscriber. With `without_home`, the pool has the sessions in place of the home.
pub(super) async fn view_in_use(
    app: &App,
    pool: &PoolId,
    without_home: Option<WithoutHome>,
) -> Result<Option<PoolView>, Error> {
    Ok(match without_home {
        Some(_) => app.engine.view_without_home(pool, LISTED_MAX).await?,
        None => app.engine.view(pool, LISTED_MAX).await?,
    })
}

/// Returns the live sessions in `view` of the pool, as [`in_use`] does.
pub(super) async fn listed(
    app: &App,
    pool: &PoolId,
    view: Option<&PoolView>,
    current: Option<SessionId>,
    reader: Option<&UserId>,
) -> Vec<DeviceSession> {
    let Some(view) = view else { return Vec::new() };
    let records = records(app, pool).await.unwrap_or_else(|error| {
        if let Some(unlogged) = app.failed_reads.next_line(Instant::now()) {
            tracing::warn!(
                causes = error.with_causes(),
                unlogged,
                "reading device records failed; devices are listed without names"
            );
        }
        Vec::new()
    });
    let is_shown =
        |record: &&SessionRecord| reader.is_none_or(|reader| record.session.users.contains(reader));
    let records: HashMap<_, _> =
        records.iter().filter(is_shown).map(|record| (record.session.id, record)).collect();
    let sessions = view.sessions.iter().rev();
    sessions.map(|live| DeviceSession::new(live, records.get(&live.session.id).copied(), current)).collect()
}

/// Reads the sessions' records. While the ledger is known to be away, the wait is short.
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
    fn new(live: &Live, record: Option<&SessionRecord>, current: Option<SessionId>) -> Self {
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
