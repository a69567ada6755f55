//! Events for the record: a change of a pool is one event.
//!
//! Invariant: the events of a pool are numbered without a gap, in the order of their changes.

use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Denial, Holder, PoolId, RegistryTime, RequestId, Seats, Session, SessionId, Tier, UserId};

/// The reason for the end of a session. A session ends once, for a single reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The client gave the seat back.
    Released,
    /// The holder was silent for the TTL, or the entitlement reached its end.
    Expired,
    /// A newcomer took the seat.
    Evicted,
    /// The holder came back and took the seat anew.
    Superseded,
    /// The holder took a higher tier.
    Upgraded,
    /// A user or an operator ended the session.
    Revoked,
    /// The entitlement was suspended or revoked.
    EntitlementEnded,
}

impl EndReason {
    /// Every reason.
    pub const ALL: [Self; 7] = [
        Self::Released,
        Self::Expired,
        Self::Evicted,
        Self::Superseded,
        Self::Upgraded,
        Self::Revoked,
        Self::EntitlementEnded,
    ];

    /// Returns `true` if time ended the session, rather than an action.
    pub const fn is_by_time(self) -> bool {
        matches!(self, Self::Expired)
    }

    /// Returns the name of the reason in records and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Released => "released",
            Self::Expired => "expired",
            Self::Evicted => "evicted",
            Self::Superseded => "superseded",
            Self::Upgraded => "upgraded",
            Self::Revoked => "revoked",
            Self::EntitlementEnded => "entitlement_ended",
        }
    }
}

/// Error: the text names no reason.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a reason for an end")]
pub struct NotAnEndReason;

impl FromStr for EndReason {
    type Err = NotAnEndReason;
    fn from_str(text: &str) -> Result<Self, NotAnEndReason> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text).ok_or(NotAnEndReason)
    }
}

/// The author of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// A user, through a client.
    User(UserId),
    /// An operator, through the admin API.
    Admin(UserId),
    /// Seatkeeper, for example the sweeper.
    System,
}

/// The cause of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// The author of the change.
    pub actor: Actor,
    /// The request behind the change. `None` for the system's own work.
    pub request: Option<RequestId>,
}

impl Origin {
    /// The system's own work.
    pub const SYSTEM: Self = Self { actor: Actor::System, request: None };
}

/// Details of a client for the record, without influence on any decision. The registry passes details on and
/// does not keep them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Particulars {
    /// Client address as seen by the server.
    pub ip: Option<IpAddr>,
    /// User agent of the program, at most 500 characters.
    pub user_agent: Option<Box<str>>,
    /// A JSON object of the client's choice, at most 4 KiB of text.
    pub metadata: Option<Box<str>>,
    /// The device, for pools held by devices.
    pub device: Option<Device>,
}

/// A device, as described by its client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// Kind of device, for example `tv`.
    pub kind: Box<str>,
    /// Name of the device, as chosen by its owner.
    pub name: Option<Box<str>>,
}

/// A change of a pool, in the order of changes made by its registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The changed pool.
    pub pool: PoolId,
    /// Number of the event in the pool: 1, 2, 3, … without a gap for as long as the pool is on record.
    pub seq: u64,
    /// Epoch of the pool's bucket.
    pub epoch: u64,
    /// The registry's time of the change.
    pub at: RegistryTime,
    /// Number of live sessions after the change.
    pub live: u32,
    /// The limit in force.
    pub limit: Seats,
    /// Version of the terms behind the limit; 0 if unknown.
    pub version: u64,
    /// Cause of the change.
    pub origin: Origin,
    /// Content of the change.
    pub change: Change,
}

/// The content of a change of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A session began.
    Admitted {
        /// The session at its start.
        session: Box<Session>,
        /// Expiry of the session unless renewed.
        expires: RegistryTime,
        /// Details sent by the client.
        particulars: Box<Particulars>,
    },
    /// A session ended.
    Ended {
        /// Id of the session.
        session: SessionId,
        /// Holder of the session.
        holder: Holder,
        /// Tier of the session.
        tier: Tier,
        /// Reason for the end.
        reason: EndReason,
        /// Last heartbeat of the session.
        last_heartbeat: RegistryTime,
        /// Expiry of the session when the session ended.
        expires: RegistryTime,
    },
    /// Claims were denied.
    Denied(Denied),
}

/// Denied claims on record. A denial does not change the state of a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    /// Holder of the last denied claim.
    pub holder: Holder,
    /// Reason for the last denial.
    pub why: Denial,
    /// Number of claims counted by the record, at least 1.
    pub count: u64,
    /// `true` if the claims were first counted, and recorded together later.
    pub folded: bool,
}

#[cfg(test)]
mod tests;
