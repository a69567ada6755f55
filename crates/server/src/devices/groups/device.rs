//! The device that creates or joins a group.

use seatkeeper_core::{Holder, Particulars, UserId};

use crate::devices::admit::DeviceType;
use crate::devices::device_request::DeviceRequest;
use crate::devices::fingerprint::fingerprint;

/// A device, as seen by the server: the holder of its membership, and the details for the record.
pub(super) struct JoiningDevice {
    pub(super) holder: Holder,
    pub(super) particulars: Particulars,
}

impl JoiningDevice {
    pub(super) fn new(request: &DeviceRequest, (id, kind, name): (&str, DeviceType, Option<&str>)) -> Self {
        // The holder contains neither address nor user agent, so a change of network keeps the membership.
        let holder = fingerprint(&device_of(&request.who.user, id), b"", None);
        Self { holder, particulars: request.particulars(kind, name) }
    }
}

/// Returns the name of a user's device among the devices of all users. The length keeps the names of different users
/// apart.
pub(super) fn device_of(user: &UserId, id: &str) -> String {
    let user = user.as_str();
    format!("{}:{user}:{id}", user.len())
}
