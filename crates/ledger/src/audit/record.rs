//! An audit record as read from the log.

use seatkeeper_core::{Device, Holder, PoolId, RegistryTime, SessionId, Span, Tier, UserId, named_enum};

use crate::Error;
use crate::database::Row;
use crate::row::Fields;

named_enum! {
    /// A stream of records under a pool's name. Each stream has its own numbers.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Stream else "not a stream of records" {
        /// Changes of the pool's entitlement. For a license, numbered by its version; for a subscriber, the
        /// changes of all the user's subscriptions.
        Entitlement = "entitlement",
        /// Changes of the plan named like the pool.
        Plan = "plan",
        /// Events of the pool's sessions, numbered by the registry.
        Session = "session",
        /// Decisions of nodes alone while the pool's registry was unreachable, numbered in the order of
        /// recording.
        Node = "node",
    }
}

named_enum! {
    /// The action of a record.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Action else "not a recorded action" {
        /// A session began.
        Admitted = "admitted",
        /// A session ended.
        Ended = "ended",
        /// Claims were denied, at least 1.
        Denied = "denied",
        /// A session began, decided by a node alone.
        AdmittedAlone = "admitted_alone",
        /// A session begun by a node alone ended.
        EndedAlone = "ended_alone",
        /// A license was created.
        LicenseCreated = "license_created",
        /// A license was changed.
        LicenseUpdated = "license_updated",
        /// A plan was created.
        PlanCreated = "plan_created",
        /// A plan was changed.
        PlanUpdated = "plan_updated",
        /// A subscription was created.
        SubscriptionCreated = "subscription_created",
        /// A subscription was changed or ended.
        SubscriptionUpdated = "subscription_updated",
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
