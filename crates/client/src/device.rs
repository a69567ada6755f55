//! Requests for the screen of a device.

use std::time::Duration;

use seatkeeper_client_core::{DeviceDoor, DeviceType, Wait};

use crate::client::{Client, Instance, plan};
use crate::error::Error;
use crate::seat::Seat;

/// A request for a screen of a subscriber.
#[derive(Debug)]
#[must_use = "a request does nothing before `admit`"]
pub struct DeviceRequest {
    client: Client,
    device: DeviceDoor,
    wait: Option<Wait>,
    patience: Option<Duration>,
}

impl Client {
    /// Starts to describe a request for a screen of the token's user, for the device with this stable name.
    pub fn device(&self, device_id: impl Into<String>, device_type: DeviceType) -> DeviceRequest {
        let device = DeviceDoor::new(device_id.into(), device_type);
        DeviceRequest { client: self.clone(), device, wait: None, patience: None }
    }
}

impl DeviceRequest {
    /// Sets the owner's name for the device, shown to the other devices.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.device.device_name = Some(name.into().into_boxed_str());
        self
    }

    /// Sets the device's session from before the start of the program, saved from [`Seat::session_id`]. A live session goes
    /// on, on any network.
    pub fn session(mut self, session_id: impl Into<String>) -> Self {
        self.device.session_id = Some(session_id.into().into_boxed_str());
        self
    }

    /// Sets the session that may end if every screen is in use: one of the `sessions` of the
    /// [`Problem`](crate::Problem) `devices-full`, chosen by the user. A later admission by the client itself ends no
    /// session for this name.
    pub fn replace(mut self, session_id: impl Into<String>) -> Self {
        self.device.replace_session_id = Some(session_id.into().into_boxed_str());
        self
    }

    /// Sets how long to ask again while every screen is in use. Default: [`Wait::No`].
    pub fn wait(mut self, wait: Wait) -> Self {
        self.wait = Some(wait);
        self
    }

    /// Sets how long to try a server that does not answer, with at least two seconds for each try. Default: 10 s; a longer wait
    /// prevails.
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Asks for the screen. A future that is dropped gives up, and releases a screen that came too late.
    pub async fn admit(self) -> Result<Seat, Error> {
        let Self { client, device, wait, patience } = self;
        client.acquire(plan(device, wait, patience), Instance::default()).await
    }
}
