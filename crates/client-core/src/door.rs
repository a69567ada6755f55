//! The doors of a server: paths and bodies of the requests for a seat of a license, or for the screen of a device.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::lease::HeldSession;
use crate::mask::MaskedKey;
use crate::request::{Call, Method};

/// The API that a machine asks, with the holder's description of itself.
#[derive(Clone, Debug)]
pub enum Door {
    /// A seat of a license.
    License(LicenseDoor),
    /// A screen of a subscriber, for a device.
    Device(DeviceDoor),
}

/// A holder of a license seat. `Debug` shows the end of the key alone.
// A program may hold thousands of seats, and a `Box<str>` is smaller than a `String`.
#[derive(Clone)]
pub struct LicenseDoor {
    /// The license's key.
    pub license_key: Box<str>,
    /// The machine, by a name that stays the same.
    pub machine_id: Box<str>,
    /// The process on the machine, for licenses that count processes.
    pub instance_id: Option<Box<str>>,
    /// The program's name for itself, for the audit log.
    pub user_agent: Option<Box<str>>,
    /// An object of the program's own, for the audit log.
    pub metadata: Option<Box<Map<String, Value>>>,
    /// The program and its client library: `name`, `version` and `sdk`. The server requires `name`. All seats of a program share
    /// one copy.
    pub client: Option<Arc<Map<String, Value>>>,
}

/// A device that takes a screen.
#[derive(Clone, Debug)]
pub struct DeviceDoor {
    /// The device, by a name that stays the same.
    pub device_id: Box<str>,
    /// The type of the device.
    pub device_type: DeviceType,
    /// The owner's name for the device, shown to the other devices.
    pub device_name: Option<Box<str>>,
    /// The device's session from before the start of the program. A live session goes on, on any network.
    pub session_id: Option<Box<str>>,
    /// The session of the same subscriber that may end if all screens are in use. Only the first admission names the session.
    pub replace_session_id: Option<Box<str>>,
}

/// The type of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceType {
    /// A phone.
    Mobile,
    /// A television, or a box beside one.
    Tv,
    /// A page in a browser.
    Browser,
    /// A tablet.
    Tablet,
}

/// The times that a heartbeat tells.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Away {
    /// The time since the last activity of the user, once the program told one.
    pub idle: Option<Duration>,
    /// The time since the start of the outage; zero in touch with the server.
    pub offline: Duration,
}

/// The longest time in a heartbeat, in seconds: a year.
const AWAY_SECONDS_MAX: u64 = 31_536_000;

const LICENSES: &str = "/api/v1/licenses";
const DEVICES: &str = "/api/v1/devices";

impl Door {
    /// Returns the path of the event stream of a session.
    #[must_use]
    pub fn events_path(&self, session: &str) -> String {
        format!("{}/sessions/{session}/events", self.base())
    }

    /// Returns the machine or the device, to which a license token belongs.
    #[must_use]
    pub fn machine(&self) -> &str {
        match self {
            Self::License(license) => &license.machine_id,
            Self::Device(device) => &device.device_id,
        }
    }

    /// Returns the code of the problem that says that every seat is in use.
    pub(crate) fn full_code(&self) -> &'static str {
        match self {
            Self::License(_) => "license-full",
            Self::Device(_) => "devices-full",
        }
    }

    /// Returns true if a release may acquire to learn the id of a session: an acquire of a license takes nothing from other
    /// holders, but an admission of a device may evict another device.
    pub(crate) fn may_find_by_acquire(&self) -> bool {
        matches!(self, Self::License(_))
    }

    /// Returns true if the server renews a session by 204, without terms. A renewal of a license always has its terms.
    pub(crate) fn renews_without_terms(&self) -> bool {
        matches!(self, Self::Device(_))
    }

    /// Returns the acquire. `last` is the latest session of the machine.
    pub(crate) fn acquire(&self, last: Option<&str>) -> Call {
        match self {
            Self::License(license) => Call::post(format!("{LICENSES}/acquire"), license.body()),
            Self::Device(device) => Call::post(format!("{DEVICES}/sessions"), device.body(last)),
        }
    }

    pub(crate) fn heartbeat(&self, session: &str, away: Away) -> Call {
        let mut body = away.body();
        match self {
            Self::License(_) => {
                let path = format!("{LICENSES}/sessions/{session}/heartbeat");
                let body = (!body.is_empty()).then_some(Value::Object(body));
                Call { method: Method::Patch, path, body, bearer: true }
            }
            Self::Device(_) => {
                body.insert("session_id".to_owned(), json!(session));
                Call::post(format!("{DEVICES}/sessions/heartbeat"), body)
            }
        }
    }

    pub(crate) fn release(&self, session: &str) -> Call {
        let path = format!("{}/sessions/{session}", self.base());
        Call { method: Method::Delete, path, body: None, bearer: true }
    }

    /// Returns the release by the session's code, which needs no token; `None` without a code.
    pub(crate) fn release_by_code(&self, session: &HeldSession) -> Option<Call> {
        let code = session.code.as_ref()?;
        let mut body = Map::new();
        body.insert("session_id".to_owned(), json!(session.id));
        body.insert("release_code".to_owned(), json!(code.as_str()));
        let call = Call::post(format!("{}/sessions/release", self.base()), body);
        Some(Call { bearer: false, ..call })
    }

    fn base(&self) -> &'static str {
        match self {
            Self::License(_) => LICENSES,
            Self::Device(_) => DEVICES,
        }
    }
}

impl From<LicenseDoor> for Door {
    fn from(license: LicenseDoor) -> Self {
        Self::License(license)
    }
}

impl From<DeviceDoor> for Door {
    fn from(device: DeviceDoor) -> Self {
        Self::Device(device)
    }
}

impl LicenseDoor {
    /// Returns a holder of a license that counts machines.
    #[must_use]
    pub fn new(license_key: impl Into<Box<str>>, machine_id: impl Into<Box<str>>) -> Self {
        Self {
            license_key: license_key.into(),
            machine_id: machine_id.into(),
            instance_id: None,
            user_agent: None,
            metadata: None,
            client: None,
        }
    }

    fn body(&self) -> Map<String, Value> {
        let Self { license_key, machine_id, instance_id, user_agent, metadata, client } = self;
        let mut body = Map::new();
        body.insert("license_key".to_owned(), json!(license_key));
        body.insert("machine_id".to_owned(), json!(machine_id));
        insert_text(&mut body, "instance_id", instance_id.as_deref());
        insert_text(&mut body, "user_agent", user_agent.as_deref());
        for (name, object) in [("metadata", metadata.as_deref()), ("client", client.as_deref())] {
            if let Some(object) = object {
                body.insert(name.to_owned(), Value::Object(object.clone()));
            }
        }
        body
    }
}

impl fmt::Debug for LicenseDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { license_key, machine_id, instance_id, user_agent, metadata, client } = self;
        f.debug_struct("LicenseDoor")
            .field("license_key", &MaskedKey(license_key))
            .field("machine_id", machine_id)
            .field("instance_id", instance_id)
            .field("user_agent", user_agent)
            .field("metadata", metadata)
            .field("client", client)
            .finish()
    }
}

impl DeviceDoor {
    /// Returns a device without a name and without an earlier session.
    #[must_use]
    pub fn new(device_id: impl Into<Box<str>>, device_type: DeviceType) -> Self {
        Self {
            device_id: device_id.into(),
            device_type,
            device_name: None,
            session_id: None,
            replace_session_id: None,
        }
    }

    /// Returns the body of an admission. After the first admission the machine names its `last` session, and replaces none.
    fn body(&self, last: Option<&str>) -> Map<String, Value> {
        let Self { device_id, device_type, device_name, session_id, replace_session_id } = self;
        let mut body = Map::new();
        body.insert("device_id".to_owned(), json!(device_id));
        body.insert("device_type".to_owned(), json!(device_type.as_str()));
        insert_text(&mut body, "device_name", device_name.as_deref());
        insert_text(&mut body, "session_id", last.or(session_id.as_deref()));
        let replaced = replace_session_id.as_deref().filter(|_| last.is_none());
        insert_text(&mut body, "replace_session_id", replaced);
        body
    }
}

impl DeviceType {
    /// All types.
    pub const ALL: [Self; 4] = [Self::Mobile, Self::Tv, Self::Browser, Self::Tablet];

    /// Returns the type's name in the API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mobile => "mobile",
            Self::Tv => "tv",
            Self::Browser => "browser",
            Self::Tablet => "tablet",
        }
    }

    /// Returns the type of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl Away {
    /// Returns the fields of a heartbeat: none without a time to tell.
    fn body(self) -> Map<String, Value> {
        let Self { idle, offline } = self;
        let offline = Some(offline).filter(|offline| offline.as_secs() > 0);
        let mut body = Map::new();
        for (name, span) in [("idle_seconds", idle), ("offline_seconds", offline)] {
            if let Some(span) = span {
                body.insert(name.to_owned(), json!(span.as_secs().min(AWAY_SECONDS_MAX)));
            }
        }
        body
    }
}

fn insert_text(body: &mut Map<String, Value>, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        body.insert(name.to_owned(), json!(text));
    }
}
