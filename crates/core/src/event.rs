//! What goes on record: one event for each change of a pool.

use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Denial, Holder, PoolId, RegistryTime, RequestId, Seats, Session, SessionId, Tier, UserId};

/// Why a session ended. It ends once, for one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Its client gave the seat back.
    Released,
    /// Its holder went silent for its TTL, or its entitlement reached its date.
    Expired,
    /// A newcomer took its seat.
    Evicted,
    /// Its own holder came back and took the seat anew.
    Superseded,
    /// Its holder took a higher tier.
    Upgraded,
    /// A user or an operator ended it.
    Revoked,
    /// Its entitlement was suspended or revoked.
    EntitlementEnded,
}

impl EndReason {
    /// All reasons.
    pub const ALL: [Self; 7] = [
        Self::Released,
        Self::Expired,
        Self::Evicted,
        Self::Superseded,
        Self::Upgraded,
        Self::Revoked,
        Self::EntitlementEnded,
    ];

    /// Whether it comes by the passing of time, and not by what somebody did.
    pub const fn is_by_time(self) -> bool {
        matches!(self, Self::Expired)
    }

    /// The reason's name in records and answers.
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

/// A text that names no reason.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a reason for an end")]
pub struct NotAnEndReason;

impl FromStr for EndReason {
    type Err = NotAnEndReason;
    fn from_str(text: &str) -> Result<Self, NotAnEndReason> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text).ok_or(NotAnEndReason)
    }
}

/// Who made a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Actor {
    /// A user, through a client.
    User(UserId),
    /// An operator, through the admin API.
    Admin(UserId),
    /// Seatkeeper itself: the sweeper, for one.
    System,
}

/// What caused a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// Who made it.
    pub actor: Actor,
    /// The request it came with; none for the system's own work.
    pub request: Option<RequestId>,
}

impl Origin {
    /// The system's own work.
    pub const SYSTEM: Self = Self { actor: Actor::System, request: None };
}

/// What is told of a client for the record and decides nothing. The registry passes it on and forgets it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Particulars {
    /// The address that the server saw.
    pub ip: Option<IpAddr>,
    /// The program's name for itself, at most 500 characters.
    pub user_agent: Option<Box<str>>,
    /// A JSON object of the client's, at most 4 KiB of text.
    pub metadata: Option<Box<str>>,
    /// The device, where devices hold the seats.
    pub device: Option<Device>,
}

/// A device as its client describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// What it is: `tv`, for one.
    pub kind: Box<str>,
    /// Its owner's name for it.
    pub name: Option<Box<str>>,
}

/// One change of a pool, in the order in which its registry made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// The pool.
    pub pool: PoolId,
    /// Its number in the pool: 1, 2, 3, … without a gap for as long as the pool is on record.
    pub seq: u64,
    /// The epoch of the pool's bucket.
    pub epoch: u64,
    /// The registry's time of the change.
    pub at: RegistryTime,
    /// Sessions live after it.
    pub live: u32,
    /// The limit that was in force.
    pub limit: Seats,
    /// The version of the terms that gave the limit; 0 where it was unknown.
    pub version: u64,
    /// What caused it.
    pub origin: Origin,
    /// What changed.
    pub change: Change,
}

/// What changed in a pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// A session began.
    Admitted {
        /// The session, as it began.
        session: Box<Session>,
        /// When it is over unless renewed.
        expires: RegistryTime,
        /// What its client told.
        particulars: Box<Particulars>,
    },
    /// A session ended.
    Ended {
        /// The session.
        session: SessionId,
        /// Who held it.
        holder: Holder,
        /// Its tier.
        tier: Tier,
        /// Why it ended.
        reason: EndReason,
        /// Its last heartbeat.
        last_heartbeat: RegistryTime,
        /// When it would have been over, or was.
        expires: RegistryTime,
    },
    /// One or more claims were denied.
    Denied(Denied),
}

/// Denied claims on record. State does not change by them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    /// Who asked last.
    pub holder: Holder,
    /// Why the last of them was denied.
    pub why: Denial,
    /// How many claims this record counts, at least 1.
    pub count: u64,
    /// Whether they were only counted when they came, and are recorded later together.
    pub folded: bool,
}

#[cfg(test)]
mod tests;
