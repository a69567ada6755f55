//! The licenses and devices APIs over a connection. Requests differ by API; answers are parsed alike.

use std::sync::Arc;

use http::Method;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::answer::{Denial, Ended, Grant, Renewal};
use crate::call::Call;
use crate::connection::{Connection, Reply};
use crate::{Error, Failure, Target};

const ACQUIRE_PATH: &str = "/api/v1/licenses/acquire";
const SESSIONS_PATH: &str = "/api/v1/licenses/sessions";
const DEVICES_PATH: &str = "/api/v1/devices/sessions";

/// The most characters of an unexpected answer in an error.
const ANSWER_TOLD_CHARS_MAX: usize = 300;

#[derive(Serialize)]
struct Acquire<'a> {
    license_key: &'a str,
    machine_id: &'a str,
}

/// Returns the request of `machine` for a seat.
pub fn acquire_call(target: &Target, license_key: &str, machine: &str) -> Result<Call, Error> {
    let ask = Acquire { license_key, machine_id: machine };
    Call::new(target, Method::POST, ACQUIRE_PATH, json_of(&ask))
}

/// The session named by a device that asks for a screen.
#[derive(Clone, Copy, Debug)]
pub enum Naming<'a> {
    /// No session.
    Nothing,
    /// The device's own session.
    Own(&'a str),
    /// A session that may be evicted for the device.
    InPlaceOf(&'a Arc<str>),
}

impl<'a> Naming<'a> {
    /// Returns the session that may be evicted.
    pub fn replaced(self) -> Option<&'a Arc<str>> {
        match self {
            Self::Nothing | Self::Own(_) => None,
            Self::InPlaceOf(session) => Some(session),
        }
    }
}

#[derive(Serialize)]
struct Admit<'a> {
    device_id: &'a str,
    device_type: &'static str,
    /// A copy of `replace_session_id`, so that the audit log shows the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    device_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replace_session_id: Option<&'a str>,
}

/// Returns the request of `device` for a screen of the subscriber whose token `target` has.
pub fn admit_call(target: &Target, device: &str, naming: Naming<'_>) -> Result<Call, Error> {
    let (session_id, replace_session_id): (Option<&str>, Option<&str>) = match naming {
        Naming::Nothing => (None, None),
        Naming::Own(session) => (Some(session), None),
        Naming::InPlaceOf(session) => (None, Some(session)),
    };
    let ask = Admit {
        device_id: device,
        device_type: "tv",
        device_name: replace_session_id,
        session_id,
        replace_session_id,
    };
    Call::new(target, Method::POST, DEVICES_PATH, json_of(&ask))
}

/// Returns the request that ends all of a subscriber's sessions except `session`.
pub fn revoke_others_call(target: &Target, session: &str) -> Result<Call, Error> {
    Call::new(target, Method::DELETE, &format!("{DEVICES_PATH}?except={session}"), "")
}

fn json_of(ask: &impl Serialize) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "a struct of texts is always JSON")]
    serde_json::to_vec(ask).expect("texts")
}

/// A session, and the requests that renew and release it.
#[derive(Clone, Debug)]
pub struct SessionCalls {
    /// The session.
    pub session: Arc<str>,
    /// The request that renews the session.
    pub heartbeat: Call,
    /// The request that releases the session.
    pub release: Call,
}

impl SessionCalls {
    /// Returns the requests for a license's session.
    pub fn new(target: &Target, session: Arc<str>) -> Result<Self, Error> {
        let path = format!("{SESSIONS_PATH}/{session}");
        let heartbeat = Call::new(target, Method::PATCH, &format!("{path}/heartbeat"), "")?;
        let release = Call::new(target, Method::DELETE, &path, "")?;
        Ok(Self { session, heartbeat, release })
    }

    /// Returns the requests for a device's session.
    pub fn of_device(target: &Target, session: Arc<str>) -> Result<Self, Error> {
        let ask = Beating { session_id: &session };
        let heartbeat = Call::new(target, Method::POST, &format!("{DEVICES_PATH}/heartbeat"), json_of(&ask))?;
        let release = Call::new(target, Method::DELETE, &format!("{DEVICES_PATH}/{session}"), "")?;
        Ok(Self { session, heartbeat, release })
    }
}

#[derive(Serialize)]
struct Beating<'a> {
    session_id: &'a str,
}

/// An answer with an unexpected status or an unreadable body.
#[derive(Debug)]
pub struct Unexpected {
    /// The HTTP status.
    pub status: u16,
    /// The first characters of the body.
    pub body: String,
}

impl Unexpected {
    /// Returns the error of an operation that the answer ends; `doing` names the operation.
    pub fn while_doing(self, doing: &'static str) -> Error {
        Error::Refused { doing, status: self.status, answer: self.body }
    }
}

impl From<&Reply> for Unexpected {
    fn from(reply: &Reply) -> Self {
        let body = String::from_utf8_lossy(&reply.body).chars().take(ANSWER_TOLD_CHARS_MAX).collect();
        Self { status: reply.status, body }
    }
}

/// The answer to a claim.
#[derive(Debug)]
pub enum Acquired {
    /// A seat.
    Granted(Grant),
    /// The pool is full.
    Denied(Denial),
    /// An unexpected status or an unreadable body.
    Unexpected(Unexpected),
}

/// The answer to a heartbeat.
#[derive(Debug)]
pub enum HeartbeatReply {
    /// The session lives on, for the time in the answer.
    Renewed(Renewal),
    /// The session lives on for its TTL: a device gets no body.
    Kept,
    /// The session has ended.
    Ended {
        /// The reason of the end.
        reason: String,
    },
    /// No such session.
    Missing,
    /// An unexpected status or an unreadable body.
    Unexpected(Unexpected),
}

/// The answer to a release.
#[derive(Debug)]
pub enum Released {
    /// The session was live and has ended.
    Now,
    /// No such live session.
    NotLive,
    /// An unexpected status.
    Unexpected(Unexpected),
}

/// Sends a claim made by [`acquire_call`] or [`admit_call`].
pub async fn acquire(on: &mut Connection, call: &Call) -> Result<Acquired, Failure> {
    let reply = on.send(call).await?;
    Ok(match reply.status {
        200 | 201 => parsed(&reply, Acquired::Granted, Acquired::Unexpected),
        403 => {
            let denied = |denial: Denial| {
                Acquired::Denied(Denial { retry_after_header: reply.retry_after_seconds, ..denial })
            };
            parsed(&reply, denied, Acquired::Unexpected)
        }
        _ => Acquired::Unexpected(Unexpected::from(&reply)),
    })
}

/// Renews a session.
pub async fn heartbeat(on: &mut Connection, calls: &SessionCalls) -> Result<HeartbeatReply, Failure> {
    let reply = on.send(&calls.heartbeat).await?;
    Ok(match reply.status {
        200 => parsed(&reply, HeartbeatReply::Renewed, HeartbeatReply::Unexpected),
        204 => HeartbeatReply::Kept,
        410 => parsed(
            &reply,
            |ended: Ended| HeartbeatReply::Ended { reason: ended.reason },
            HeartbeatReply::Unexpected,
        ),
        404 => HeartbeatReply::Missing,
        _ => HeartbeatReply::Unexpected(Unexpected::from(&reply)),
    })
}

/// Releases a session.
pub async fn release(on: &mut Connection, calls: &SessionCalls) -> Result<Released, Failure> {
    let reply = on.send(&calls.release).await?;
    Ok(match reply.status {
        204 => Released::Now,
        404 => Released::NotLive,
        _ => Released::Unexpected(Unexpected::from(&reply)),
    })
}

fn parsed<T: DeserializeOwned, A>(
    reply: &Reply,
    good: impl FnOnce(T) -> A,
    bad: impl FnOnce(Unexpected) -> A,
) -> A {
    match serde_json::from_slice(&reply.body) {
        Ok(answer) => good(answer),
        Err(_) => bad(Unexpected::from(reply)),
    }
}
