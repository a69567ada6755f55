//! Values shared by the responses of several APIs: heartbeat intervals, and the end of a session.

use seatkeeper_core::{EndReason, Span};

use crate::problem::{self, Problem};
use crate::times::text_of;
use seatkeeper_engine::EndedSession;

/// Returns the interval between a client's heartbeats: a third of the TTL in whole seconds, at least 1.
pub(crate) fn heartbeat_interval_seconds(ttl: Span) -> u64 {
    (ttl.as_secs_floor() / 3).max(1)
}

/// Builds the answer to a heartbeat of an ended session. Older clients compare the text of `expired` and
/// acquire anew, so no other reason may have the text.
pub(crate) fn session_ended(past: EndedSession) -> Problem {
    let kind = match past.reason {
        EndReason::Expired => &problem::SESSION_EXPIRED,
        EndReason::EntitlementEnded => &problem::SESSION_ENTITLEMENT_ENDED,
        EndReason::Released
        | EndReason::Evicted
        | EndReason::Superseded
        | EndReason::Upgraded
        | EndReason::Revoked
        | EndReason::GroupContent
        | EndReason::Moved => &problem::SESSION_ENDED,
    };
    let reason = past.reason.as_str();
    Problem::new(kind, format!("It ended as `{reason}`."))
        .with("reason", reason)
        .with("last_heartbeat_at", text_of(past.last_heartbeat))
}
