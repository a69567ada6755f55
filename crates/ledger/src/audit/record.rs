//! A record as it is read.

use std::fmt;
use std::str::FromStr;

use seatkeeper_core::{Device, Holder, PoolId, RegistryTime, SessionId, Span, Tier, UserId};

use crate::Error;
use crate::database::Row;
use crate::row::Fields;

/// One of the streams of records under a pool's name, each numbered on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stream {
    /// Changes of its entitlement: of a license, numbered by its version; of a subscriber, those of all
    /// the user's subscriptions.
    Entitlement,
    /// Changes of the plan that has this name.
    Plan,
    /// What happened to its sessions, numbered by the registry.
    Session,
    /// What nodes decided alone of it while its registry was out of reach, numbered as it came on record.
    Node,
}

impl Stream {
    const ALL: [Self; 4] = [Self::Entitlement, Self::Plan, Self::Session, Self::Node];

    /// The stream's name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Entitlement => "entitlement",
            Self::Plan => "plan",
            Self::Session => "session",
            Self::Node => "node",
        }
    }
}

/// What a record says happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// A session began.
    Admitted,
    /// A session ended.
    Ended,
    /// One or more claims were denied.
    Denied,
    /// A session began by one node's memory alone.
    AdmittedAlone,
    /// Such a session ended.
    EndedAlone,
    /// A license was made.
    LicenseCreated,
    /// A license was changed.
    LicenseUpdated,
    /// A plan was made.
    PlanCreated,
    /// A plan was changed.
    PlanUpdated,
    /// A subscription was made.
    SubscriptionCreated,
    /// A subscription was changed, or ended.
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

    /// The action's name in records and answers.
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

/// One record of the audit log. Which of the optional members it has depends on its action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditRecord {
    /// Its place in the whole log: rises with time, with gaps.
    pub id: u64,
    /// The registry's time of the change.
    pub at: RegistryTime,
    /// The pool.
    pub pool: PoolId,
    /// Which of the streams of that name it belongs to.
    pub stream: Stream,
    /// Its number in the stream: 1, 2, 3, … without a gap, but where retention has deleted some.
    pub seq: u64,
    /// The epoch of the pool's bucket.
    pub epoch: u64,
    /// What happened.
    pub action: Action,
    /// The session that began or ended.
    pub session: Option<SessionId>,
    /// Who holds or asked for the seat.
    pub holder: Option<Holder>,
    /// Who caused it: `user:` or `admin:` and a name, or `system`.
    pub actor: String,
    /// The request that it came with.
    pub request: Option<String>,
    /// Why a session ended or a claim was denied.
    pub reason: Option<String>,
    /// The limit that was in force; in the entitlement stream, from then on.
    pub limit: u32,
    /// The version of the entitlement that gave the limit; 0 where it was unknown.
    pub version: u64,
    /// Sessions live in the pool after it; in the session stream alone.
    pub live: Option<u32>,
    /// How many claims a denial counts; 1 otherwise.
    pub count: u64,
    /// Whether these denials were only counted when they happened, and recorded later together.
    pub folded: bool,
    /// The user who was admitted.
    pub user: Option<UserId>,
    /// The session's tier.
    pub tier: Option<Tier>,
    /// The client's address at its admission.
    pub ip: Option<String>,
    /// The client's name for itself at its admission.
    pub user_agent: Option<String>,
    /// The client's JSON object at its admission.
    pub metadata: Option<String>,
    /// The device that was admitted.
    pub device: Option<Device>,
    /// The TTL at the admission.
    pub ttl: Option<Span>,
    /// The session's last heartbeat.
    pub last_heartbeat: Option<RegistryTime>,
    /// When the session was over, or was to be.
    pub expires: Option<RegistryTime>,
    /// The entitlement after its change, or the node that decided alone: a JSON object, without secrets.
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
