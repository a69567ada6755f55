//! A refusal in the server's words (RFC 9457).

use std::time::Duration;

use serde::Deserialize;

use crate::response::Response;

/// A problem that the server answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Problem {
    /// The `type`: a URL whose last segment is the [`code`](Self::code).
    #[serde(rename = "type")]
    kind: String,
    /// The HTTP status.
    pub status: u16,
    /// One short sentence for the kind of problem.
    pub title: String,
    /// One sentence for this occurrence.
    pub detail: Option<String>,
    /// Seconds to wait before the next try.
    pub retry_after_seconds: Option<u64>,
    /// The number of seats of a full license.
    pub seats_total: Option<u32>,
    /// Some holders of a full license, the stalest first.
    pub holders: Vec<Holder>,
    /// The number of devices that the plan allows, if every screen is in use.
    pub device_limit: Option<u32>,
    /// The number of devices in use, if every screen is in use.
    pub devices_in_use: Option<u32>,
    /// The sessions that hold the screens of a subscriber, the most recent heartbeat first.
    pub sessions: Vec<DeviceSession>,
    /// The fields of the request that are wrong.
    pub errors: Vec<FieldError>,
    /// The reason of an ended session.
    pub reason: Option<String>,
    /// The cause of an ended session, where the server names one.
    #[serde(deserialize_with = "text_or_nothing")]
    pub by: Option<Box<str>>,
    /// The person to ask about an expired license.
    pub contact_support: Option<String>,
    /// The request in the server's log, by the header `X-Request-Id`.
    #[serde(skip)]
    pub request_id: Option<Box<str>>,
}

/// A holder of a seat.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Holder {
    /// The machine.
    pub machine_id: String,
    /// The process on the machine, where the license counts processes.
    pub instance_id: Option<String>,
}

/// A device with a screen of the subscriber.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct DeviceSession {
    /// The session, for [`DeviceDoor::replace_session_id`](crate::DeviceDoor::replace_session_id).
    pub session_id: String,
    /// The type of the device, unless the server cannot look it up now.
    pub device_type: Option<String>,
    /// The owner's name for the device.
    pub device_name: Option<String>,
    /// The time of the admission, in RFC 3339.
    pub started_at: Option<String>,
    /// The time of the last heartbeat, in RFC 3339.
    pub last_heartbeat_at: Option<String>,
}

/// A field of a request that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct FieldError {
    /// The name of the field.
    pub field: String,
    /// The rule that the field breaks.
    pub message: String,
}

/// Reads a text; other JSON is no error, for a later server may say more.
fn text_or_nothing<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<str>>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(value.as_str().map(Into::into))
}

/// The longest pause that a denial may ask for: a day.
const RETRY_AFTER_SECONDS_MAX: u64 = 86_400;

impl Problem {
    /// Returns the problem of a 401 without one, in the words of the server.
    pub(crate) fn unauthenticated(response: &Response) -> Self {
        Self {
            status: 401,
            title: "A valid bearer token is required".to_owned(),
            request_id: response.request_id.clone(),
            ..Self::default()
        }
    }

    /// Parses the body of an answer; `None` if it is no JSON object with a `type` or a `title`: some proxy answered, not the server.
    pub(crate) fn parse(response: &Response) -> Option<Self> {
        let mut problem: Self = serde_json::from_slice(&response.body).ok()?;
        problem.status = response.status;
        problem.request_id.clone_from(&response.request_id);
        (!problem.kind.is_empty() || !problem.title.is_empty()).then_some(problem)
    }

    /// Returns the name of the kind: the last segment of `type`, or a name by status.
    #[must_use]
    pub fn code(&self) -> &str {
        let last = self.kind.rsplit('/').next().unwrap_or_default();
        match (last, self.status) {
            ("" | "about:blank", 401) => "unauthenticated",
            ("" | "about:blank", 403) => "forbidden",
            ("" | "about:blank", 404) => "not-found",
            ("" | "about:blank", 410) => "session-ended",
            ("" | "about:blank", 422) => "invalid-request",
            ("" | "about:blank", _) => "refused",
            (name, _) => name,
        }
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.retry_after_seconds.map(|seconds| Duration::from_secs(seconds.min(RETRY_AFTER_SECONDS_MAX)))
    }
}
