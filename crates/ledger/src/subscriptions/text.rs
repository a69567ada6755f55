//! A subscriber as a text, for caches outside the process.

use seatkeeper_core::{RegistryTime, Seats};
use serde::{Deserialize, Serialize};

use super::terms::{Held, Subscriber};
use crate::plans::GroupRules;

/// The text's content, as JSON. Times are in milliseconds.
#[derive(Serialize, Deserialize)]
struct Stored {
    status: String,
    starts_at: u64,
    ends_at: Option<u64>,
    version: u64,
    plan: String,
    device_limit: u32,
    when_full: String,
    ttl_seconds: Option<u32>,
    #[serde(flatten)]
    groups: GroupRules,
    plan_version: u64,
}

impl Stored {
    fn from_held(held: &Held) -> Self {
        Self {
            status: held.status.as_str().to_owned(),
            starts_at: held.starts_at.as_millis(),
            ends_at: held.ends_at.map(RegistryTime::as_millis),
            version: held.version,
            plan: held.plan.as_str().to_owned(),
            device_limit: held.device_limit.0,
            when_full: held.when_full.as_str().to_owned(),
            ttl_seconds: held.ttl_seconds,
            groups: held.groups,
            plan_version: held.plan_version,
        }
    }

    fn held(self) -> Option<Held> {
        Some(Held {
            status: self.status.parse().ok()?,
            starts_at: RegistryTime::from_millis(self.starts_at),
            ends_at: self.ends_at.map(RegistryTime::from_millis),
            version: self.version,
            plan: self.plan.parse().ok()?,
            device_limit: Seats(self.device_limit),
            when_full: self.when_full.parse().ok()?,
            ttl_seconds: self.ttl_seconds,
            groups: self.groups,
            plan_version: self.plan_version,
        })
    }
}

impl Subscriber {
    /// Serializes the subscriber as a text.
    pub fn to_text(&self) -> String {
        serde_json::json!(self.held().map(Stored::from_held)).to_string()
    }

    /// Parses a text of [`to_text`](Self::to_text); `None` for an invalid text.
    pub fn from_text(text: &str) -> Option<Self> {
        match serde_json::from_str::<Option<Stored>>(text).ok()? {
            Some(stored) => stored.held().map(|held| Self::new(Some(held))),
            None => Some(Self::new(None)),
        }
    }
}

#[cfg(test)]
mod tests;
