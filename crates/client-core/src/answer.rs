//! Responses, classified by the holder's next decision.

use std::time::Duration;

use serde::Deserialize;

use crate::door::Door;
use crate::lease::{GRACE_MAX, Grant, HeldSession, Reacquire, ReleaseCode, Renewal};
use crate::problem::Problem;
use crate::response::{Failure, Response};
use crate::state::LossReason;

/// A response that is no success.
#[derive(Debug)]
pub(crate) enum Setback {
    /// The server, or something before it, cannot answer now: try again.
    /// `in_doubt`: the server may have carried the request out.
    Transient { failure: Failure, retry_after: Option<Duration>, in_doubt: bool },
    /// The server does not support the request (501, 505): the next try comes no sooner than the next heartbeat.
    Hopeless,
    /// The token is not accepted.
    Unauthenticated(Box<Problem>),
    /// The server refuses the request itself.
    Refused(Box<Problem>),
}

/// The answer to a heartbeat that has not renewed the session.
#[derive(Debug)]
pub(crate) enum BeatSetback {
    /// Try the heartbeat again.
    Transient { retry_after: Option<Duration> },
    /// Try the heartbeat again when the next one is due; `refused` by the server itself.
    Hopeless { refused: bool },
    /// The token is not accepted.
    Unauthenticated,
    /// The token may no longer use the license.
    Forbidden,
    /// The server knows no such session of this user.
    NotFound,
    /// The session is over.
    Gone { reason: LossReason, by: Option<Box<str>> },
}

/// The body of a granted acquire; fields that a server does not know yet have defaults.
#[derive(Deserialize)]
struct GrantBody {
    session_id: String,
    release_code: Option<ReleaseCode>,
    license_id: Option<String>,
    expires_in_seconds: u64,
    heartbeat_interval_seconds: Option<u64>,
    #[serde(default)]
    grace_seconds: u64,
    #[serde(default)]
    reacquire: Reacquire,
    #[serde(alias = "devices_in_use")]
    seats_used: Option<u32>,
    #[serde(alias = "device_limit")]
    seats_total: Option<u32>,
}

/// The body of an answered heartbeat.
#[derive(Deserialize)]
struct RenewalBody {
    session_id: Option<String>,
    expires_in_seconds: u64,
    heartbeat_interval_seconds: Option<u64>,
    grace_seconds: Option<u64>,
    reacquire: Option<Reacquire>,
}

fn grace(seconds: u64) -> Duration {
    Duration::from_secs(seconds).min(GRACE_MAX)
}

/// The longest span accepted from a server: ten years. Sums of such spans cannot overflow.
const SPAN_MAX: Duration = Duration::from_secs(315_360_000);

/// The longest `Retry-After` that counts: an hour. A lost seat waits for `Retry-After` in full, and a proxy may ask for years.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(3_600);

fn span(seconds: u64) -> Duration {
    Duration::from_secs(seconds).min(SPAN_MAX)
}

/// Reads the answer to an acquire.
pub(crate) fn read_acquire(response: &Response) -> Result<Grant, Setback> {
    if !matches!(response.status, 200 | 201) {
        return Err(setback(response));
    }
    let body: GrantBody = serde_json::from_slice(&response.body).map_err(|_| garbage())?;
    Ok(Grant {
        session: HeldSession { id: body.session_id.into(), code: body.release_code },
        license_id: body.license_id.map(Into::into),
        seats: body.seats_used.zip(body.seats_total),
        expires_in: span(body.expires_in_seconds),
        interval: body.heartbeat_interval_seconds.map(span),
        grace: grace(body.grace_seconds),
        reacquire: body.reacquire,
    })
}

/// Reads the answer to a heartbeat of `session`. A gateway that answers for the server renews nothing.
pub(crate) fn read_heartbeat(
    response: &Response,
    session: &str,
    door: &Door,
) -> Result<Renewal, BeatSetback> {
    match response.status {
        204 if door.renews_without_terms() => Ok(Renewal::default()),
        200 => read_renewal(response, session).ok_or(BeatSetback::Transient { retry_after: None }),
        _ => Err(beat_setback(response)),
    }
}

/// Reads the terms of a renewal; `None` without `expires_in_seconds`, and for another session.
fn read_renewal(response: &Response, session: &str) -> Option<Renewal> {
    let body: RenewalBody = serde_json::from_slice(&response.body).ok()?;
    let is_ours = body.session_id.is_none_or(|id| id == session);
    is_ours.then(|| Renewal {
        expires_in: Some(span(body.expires_in_seconds)),
        interval: body.heartbeat_interval_seconds.map(span),
        grace: body.grace_seconds.map(grace),
        reacquire: body.reacquire,
    })
}

fn beat_setback(response: &Response) -> BeatSetback {
    match setback(response) {
        Setback::Transient { retry_after, .. } => BeatSetback::Transient { retry_after },
        Setback::Hopeless => BeatSetback::Hopeless { refused: false },
        Setback::Unauthenticated(_) => BeatSetback::Unauthenticated,
        Setback::Refused(problem) => match problem.status {
            403 => BeatSetback::Forbidden,
            404 => BeatSetback::NotFound,
            410 => BeatSetback::Gone { reason: gone_reason(&problem), by: problem.by },
            _ => BeatSetback::Hopeless { refused: true },
        },
    }
}

/// The reason of a 410: the member `reason`, else the kind of problem.
fn gone_reason(problem: &Problem) -> LossReason {
    match (problem.reason.as_deref(), problem.code()) {
        (Some(reason), _) => LossReason::from_name(reason),
        (None, "session-expired") => LossReason::Expired,
        (None, "session-entitlement-ended") => LossReason::EntitlementEnded,
        (None, _) => LossReason::Ended,
    }
}

fn setback(response: &Response) -> Setback {
    let problem = Problem::parse(response);
    let told = problem.as_ref().and_then(Problem::retry_after);
    let retry_after = response.retry_after.max(told).map(|told| told.min(RETRY_AFTER_MAX));
    match (response.status, problem) {
        (401, problem) => {
            let problem = problem.unwrap_or_else(|| Problem::unauthenticated(response));
            Setback::Unauthenticated(Box::new(problem))
        }
        (501 | 505, _) => Setback::Hopeless,
        (408 | 429 | 500..=599, _) => {
            // A rate limit rejects a request before any work.
            let in_doubt = response.status != 429;
            Setback::Transient { failure: Failure::Unavailable, retry_after, in_doubt }
        }
        (400..=499, Some(problem)) => Setback::Refused(Box::new(problem)),
        // A page of a proxy, a redirect or an unknown success: no word of the server about the seat.
        _ => garbage(),
    }
}

fn garbage() -> Setback {
    Setback::Transient { failure: Failure::Garbage, retry_after: None, in_doubt: true }
}
