//! The device that creates or joins a group.

use axum::http::header::{HeaderMap, USER_AGENT};
use seatkeeper_core::{Device, Holder, Particulars};

use crate::devices::admit::{DeviceType, printable_user_agent};
use crate::devices::fingerprint::fingerprint;
use crate::http::Meta;

/// A device, as seen by the server: the holder of its membership, and the details for the record.
pub(super) struct JoiningDevice {
    pub(super) holder: Holder,
    pub(super) particulars: Particulars,
}

impl JoiningDevice {
    pub(super) fn new(
        (id, kind, name): (&str, DeviceType, Option<&str>),
        headers: &HeaderMap,
        meta: &Meta,
    ) -> Self {
        let user_agent = headers.get(USER_AGENT).map(|value| value.as_bytes()).unwrap_or_default();
        let device = Device { kind: kind.as_str().into(), name: name.map(Into::into) };
        Self {
            holder: fingerprint(id, user_agent, meta.ip),
            particulars: Particulars {
                ip: meta.ip,
                user_agent: printable_user_agent(user_agent),
                metadata: None,
                device: Some(device),
            },
        }
    }
}
