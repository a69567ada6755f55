//! An audit record as read from the log.

use std::fmt;
use std::str::FromStr;

use seatkeeper_core::{Device, Holder, PoolId, RegistryTime, SessionId, Span, Tier, UserId};

use crate::Error;
use crate::database::Row;
use crate::row::Fields;

/// A stream of records under a pool's name. Each stream has its own numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// Changes of the pool's entitlement. For a license, numbered by its version; for a subscriber, the
    /// changes of all the user's subscriptions.
    Entitlement,
    /// Changes of the plan named like the pool.
    Plan,
    /// Events of the pool's sessions, numbered by the registry.
    Session,
    /// Decisions of nodes alone while the pool's registry was unreachable, numbered in the order of
    /// recording.
    Node,
}

impl Stream {
    const ALL: [Self; 4] = [Self::Entitlement, Self::Plan, Self::Session, Self::Node];

    /// Returns the stream's name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Entitlement => "entitlement",
            Self::Plan => "plan",
            Self::Session => "session",
            Self::Node => "node",
        }
    }
}

/// The action of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// A session began.
    Admitted,
    /// A session ended.
    Ended,
    /// Claims were denied, at least 1.
    Denied,
    /// A session began, decided by a node alone.
    AdmittedAlone,
    /// A session begun by a node alone ended.
    EndedAlone,
    /// A license was created.
    LicenseCreated,
    /// A license was changed.
    LicenseUpdated,
    /// A plan was created.
    PlanCreated,
    /// A plan was changed.
    PlanUpdated,
    /// A subscription was created.
    SubscriptionCreated,
    /// A subscription was changed or ended.
    SubscriptionUpdated,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 11] = [
        Self::Admitted,
        Self::Ended,
        Self::Denied,
        Self::AdmittedAlone,
        Self::EndedAlone,
        Self::LicenseCreated,
        Self::LicenseUpdated,
        Self::PlanCreated,
        Self::PlanUpdated,
        Self::SubscriptionCreated,
        Self::SubscriptionUpdated,
    ];

    /// Returns the action's name in records and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Admitted => "admitted",
            Self::Ended => "ended",
            Self::Denied => "denied",
            Self::AdmittedAlone => "admitted_alone",
            Self::EndedAlone => "ended_alone",
            Self::LicenseCreated => "license_created",
            Self::LicenseUpdated => "license_updated",
            Self::PlanCreated => "plan_created",
            Self::PlanUpdated => "plan_updated",
            Self::SubscriptionCreated => "subscription_created",
            Self::SubscriptionUpdated => "subscription_updated",
        }
    }
}

/// A text that names no stream or no action.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a {0}")]
pub struct NotNamed(&'static str);

impl FromStr for Stream {
    type Err = NotNamed;
    fn from_str(text: &str) -> Result<Self, NotNamed> {
        Self::ALL.into_iter().find(|stream| stream.as_str() == text).ok_or(NotNamed("stream of records"))
    }
}

impl FromStr for Action {
    type Err = NotNamed;
    fn from_str(text: &str) -> Result<Self, NotNamed> {
        Self::ALL.into_iter().find(|action| action.as_str() == text).ok_or(NotNamed("recorded action"))
    }
}

impl fmt::Display for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A record of the audit log. The action determines the optional fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// The record's place in the whole log: increasing, with gaps.
    pub id: u64,
    /// The registry time of the change.
    pub at: RegistryTime,
    /// The pool.
    pub pool: PoolId,
    /// The record's stream.
    pub stream: Stream,
    /// The record's number in the stream: 1, 2, 3, … without a gap, except for records deleted by retention.
    pub seq: u64,
    /// The epoch of the pool's bucket.
    pub epoch: u64,
    /// The action.
    pub action: Action,
    /// The session begun or ended.
    pub session: Option<SessionId>,
    /// The holder of the seat, or the denied claimant.
    pub holder: Option<Holder>,
    /// The actor: `user:` or `admin:` and a name, or `system`.
    pub actor: String,
    /// The id of the request.
    pub request: Option<String>,
    /// The reason of an end or a denial.
    pub reason: Option<String>,
    /// The limit in force; in the entitlement stream, the limit from the change on.
    pub limit: u32,
    /// The version of the entitlement giving the limit; 0 if unknown.
    pub version: u64,
    /// Live sessions in the pool after the event; only in the session stream.
    pub live: Option<u32>,
    /// The number of denied claims; 1 for other actions.
    pub count: u64,
    /// The denials were only counted when they happened, and recorded together later.
    pub folded: bool,
    /// The admitted user.
    pub user: Option<UserId>,
    /// The session's tier.
    pub tier: Option<Tier>,
    /// The client's address at the admission.
    pub ip: Option<String>,
    /// The client's user agent at the admission.
    pub user_agent: Option<String>,
    /// The client's JSON object at the admission.
    pub metadata: Option<String>,
    /// The admitted device.
    pub device: Option<Device>,
    /// The TTL at the admission.
    pub ttl: Option<Span>,
    /// The session's last heartbeat.
    pub last_heartbeat: Option<RegistryTime>,
    /// The time when the session was over, or was due to be over.
    pub expires: Option<RegistryTime>,
    /// The entitlement after a change, or the node deciding alone: a JSON object without secrets.
    pub detail: Option<String>,
}

impl AuditRecord {
    pub(crate) fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        Ok(Self {
            id: fields.whole("id")?,
            at: fields.time("at")?,
            pool: fields.pool()?,
            stream: fields.named("stream")?,
            seq: fields.whole("seq")?,
            epoch: fields.whole("epoch")?,
            action: fields.named("action")?,
            session: fields.session_id_maybe("session_id")?,
            holder: fields.value::<Option<&str>>("holder")?.map(Holder::new),
            actor: fields.value("actor")?,
            request: fields.value("request_id")?,
            reason: fields.value("reason")?,
            limit: fields.small("limit_seats")?,
            version: fields.whole("limit_version")?,
            live: fields.number_maybe("live")?,
            count: fields.whole("count")?,
            folded: fields.value("folded")?,
            user: fields.value::<Option<&str>>("user_id")?.map(UserId::new),
            tier: fields.number_maybe("tier")?.map(Tier),
            ip: fields.value("ip")?,
            user_agent: fields.value("user_agent")?,
            metadata: fields.value("metadata")?,
            device: fields.device()?,
            ttl: fields.number_maybe("ttl_ms")?.map(Span::from_millis),
            last_heartbeat: fields.time_maybe("last_heartbeat_at")?,
            expires: fields.time_maybe("expires_at")?,
            detail: fields.value("detail")?,
        })
    }
}
