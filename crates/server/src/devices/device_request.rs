//! The request of a device for a screen, or for a place in a group.

use axum::extract::FromRequestParts;
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use axum::response::Response;
use seatkeeper_core::{Device, Origin, Particulars, PoolKind};

use super::admit::DeviceType;
use crate::app::App;
use crate::error::Error;
use crate::http::{Meta, USER_AGENT_CHARS_MAX, Who};
use crate::regions::{Forwarder, WithoutHome};

/// The head of a device's request: the caller, the address and the user agent.
pub(super) struct DeviceRequest {
    pub(super) app: App,
    pub(super) who: Who,
    pub(super) meta: Meta,
    /// The header as sent, or no bytes without the header.
    pub(super) user_agent: Vec<u8>,
    /// Another region has forwarded the request.
    pub(super) is_forwarded: bool,
    /// The mark of a request in place of the unreachable home.
    pub(super) without_home: Option<WithoutHome>,
}

impl FromRequestParts<App> for DeviceRequest {
    type Rejection = Error;
    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Error> {
        let who = Who::from_request_parts(parts, app).await?;
        let Ok(meta) = Meta::from_request_parts(parts, app).await;
        let user_agent = parts.headers.get(USER_AGENT).map(|value| value.as_bytes().to_vec());
        Ok(Self {
            app: app.clone(),
            who,
            meta,
            user_agent: user_agent.unwrap_or_default(),
            is_forwarded: parts.extensions.get::<Forwarder>().is_some(),
            without_home: parts.extensions.get().copied(),
        })
    }
}

impl DeviceRequest {
    /// Awaits `answer` if the caller's rate of acquires lets the request pass. `answer` reads the body, so that a throttled
    /// request costs little.
    pub(super) async fn limited(
        &self,
        kind: PoolKind,
        answer: impl Future<Output = Result<Response, Error>>,
    ) -> Result<Response, Error> {
        self.app.limits.acquire(kind, &self.who, &self.meta.standing, answer).await
    }

    /// Returns the author of the request, for the record.
    pub(super) fn origin(&self) -> Origin {
        self.meta.origin(self.who.as_user())
    }

    /// Returns the details of the device for the record.
    pub(super) fn particulars(&self, kind: DeviceType, name: Option<&str>) -> Particulars {
        Particulars {
            ip: self.meta.ip,
            user_agent: self.printable_user_agent(),
            metadata: None,
            device: Some(Device { kind: kind.as_str().into(), name: name.map(Into::into) }),
        }
    }

    /// Returns the printable part of the user agent; `None` if nothing is printable.
    fn printable_user_agent(&self) -> Option<Box<str>> {
        let sent = String::from_utf8_lossy(&self.user_agent);
        let mut printable = String::with_capacity(sent.len());
        printable.extend(sent.chars().filter(|char| !char.is_control()).take(USER_AGENT_CHARS_MAX));
        (!printable.is_empty()).then(|| printable.into())
    }
}
