//! The body of a heartbeat: times without activity and without contact, measured by the client.

use std::time::Duration;

use garde::Validate;
use seatkeeper_core::SessionId;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;

/// Longest time in a heartbeat, in seconds: a year.
const AWAY_SECONDS_MAX: u32 = 31_536_000;

/// Optional body of a heartbeat.
#[derive(Clone, Copy, Debug, Default, Deserialize, Validate, ToSchema)]
#[serde(default)]
pub(crate) struct HeartbeatBody {
    /// Seconds since the last activity of the user.
    #[garde(custom(away_field))]
    #[schema(maximum = 31_536_000)]
    pub(crate) idle_seconds: Option<u32>,
    /// Seconds that the client went on without an answer of the server.
    #[garde(custom(away_field))]
    #[schema(maximum = 31_536_000)]
    pub(crate) offline_seconds: Option<u32>,
}

impl HeartbeatBody {
    /// Counts and logs the times of a renewed session. A heartbeat is no event, so neither time goes on record.
    pub(crate) fn observe(self, app: &App, id: SessionId) {
        let Self { idle_seconds, offline_seconds } = self;
        if let Some(seconds) = offline_seconds.filter(|seconds| *seconds > 0) {
            app.metrics.heartbeats.was_offline(Duration::from_secs(seconds.into()));
        }
        if idle_seconds.is_some() || offline_seconds.is_some() {
            tracing::debug!(session = %id, idle_seconds, offline_seconds, "a client told its idle and offline time");
        }
    }
}

/// Checks a time in a heartbeat if present: up to a year.
pub(crate) fn away_field(seconds: &Option<u32>, _: &()) -> garde::Result {
    if seconds.is_some_and(|seconds| seconds > AWAY_SECONDS_MAX) {
        return Err(garde::Error::new(format!("must be 0 to {AWAY_SECONDS_MAX} seconds")));
    }
    Ok(())
}
