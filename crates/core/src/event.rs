//! Events for the record: a change of a pool is one event.
//!
//! Invariant: the events of a pool are numbered without a gap, in the order of their changes.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::{Denial, Holder, PoolId, RegistryTime, RequestId, Seats, Session, SessionId, Tier, UserId};

crate::named_enum! {
    /// The reason for the end of a session. A session ends once, for a single reason.
    #[derive(PartialOrd, Ord, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum EndReason else "not a reason for an end" {
        /// The client gave the seat back.
        Released = "released",
        /// The holder was silent for the TTL, or the entitlement reached its end.
        Expired = "expired",
        /// A newcomer took the seat.
        Evicted = "evicted",
        /// The holder came back and took the seat anew.
        Superseded = "superseded",
        /// The holder took a higher tier.
        Upgraded = "upgraded",
        /// A user or an operator ended the session.
        Revoked = "revoked",
        /// The entitlement was suspended or revoked.
        EntitlementEnded = "entitlement_ended",
        /// The member of a group watched other content than the host.
        GroupContent = "group_content",
        /// The subscriber's home moved, and the session goes on in the new home region.
        Moved = "moved",
    }
}

impl EndReason {
    /// Returns `true` if time ended the session, rather than an action.
    pub const fn is_by_time(self) -> bool {
        matches!(self, Self::Expired)
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
