//! What the answers of several APIs tell a client.

use seatkeeper_core::{EndReason, Span};

use crate::problem::{self, Problem};
use crate::times::text_of;
use seatkeeper_engine::EndedSession;

/// The longest wait that a denial asks for, before it is spread by up to a quarter: a seat may be given
/// back long before a TTL is over.
const WAIT_SECONDS_MAX: u64 = 60;

/// How often a client should heartbeat: after a third of the TTL, in whole seconds, at least 1.
pub(crate) fn heartbeat_interval_seconds(ttl: Span) -> u64 {
    (ttl.as_secs_floor() / 3).max(1)
}

/// How long the denied should wait before they ask again, in seconds, if a seat can come free in
/// `free_in` at the earliest: 1 to 60, and up to a quarter more at random, so that they do not come back in
/// one instant.
pub(crate) fn wait_seconds(free_in: Option<Span>) -> u64 {
    let seconds = free_in.map_or(WAIT_SECONDS_MAX, Span::as_secs_ceil).clamp(1, WAIT_SECONDS_MAX);
    seconds + rand::random_range(0..=seconds.div_ceil(4))
}

/// The answer to a heartbeat of a session that has ended. Older clients compare the text of `expired`, and acquire anew: no
/// other reason may have it.
pub(crate) fn session_ended(past: EndedSession) -> Problem {
    let kind = match past.reason {
        EndReason::Expired => &problem::SESSION_EXPIRED,
        EndReason::EntitlementEnded => &problem::SESSION_ENTITLEMENT_ENDED,
        EndReason::Released
        | EndReason::Evicted
        | EndReason::Superseded
        | EndReason::Upgraded
        | EndReason::Revoked => &problem::SESSION_ENDED,
    };
    let reason = past.reason.as_str();
    Problem::new(kind, format!("It ended as `{reason}`."))
        .with("reason", reason)
        .with("last_heartbeat_at", text_of(past.last_heartbeat))
}
