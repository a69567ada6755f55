//! The errors of request handling. `problem` maps each error to a status, in a single place.

use seatkeeper_core::{Region, TenantId, UserId};
use seatkeeper_engine::Unready;
use seatkeeper_ledger::homes::Home;

use crate::auth::{self, Refusal};
use crate::outbound::PeerFault;

/// An invalid field of a request.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub(crate) struct FieldError {
    /// The field's path in the request.
    pub(crate) field: String,
    /// The fault of the field.
    pub(crate) message: String,
}

/// The reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error("the caller is not known")]
    Unauthenticated(#[from] Refusal),
    #[error("the server has no key to check tokens with")]
    NoKeys,
    #[error("the caller lacks the admin scope")]
    NotAdmin,
    #[error("the caller lacks the service scope")]
    NotService,
    #[error("the capacity is another user's, and the caller is neither a service nor an admin")]
    NotCapacityOwner,
    #[error("the caller asks too often")]
    TooOften { wait_seconds: u64 },
    #[error("it cannot be told how often the caller asks")]
    Uncounted,
    #[error("as many requests are under way as may be")]
    TooBusy,
    #[error("the request has no valid Host header, or several")]
    InvalidHost,
    #[error("the body is not JSON")]
    NotJson(#[source] serde_json::Error),
    #[error("the body is not UTF-8")]
    NotUtf8(#[source] std::str::Utf8Error),
    #[error("the body could not be read")]
    BodyUnreadable(#[source] axum::Error),
    #[error("the body did not come in time")]
    BodyTooSlow,
    #[error("the body is longer than 64 KiB")]
    BodyTooLarge,
    #[error("fields of the request are not as they must be")]
    Invalid(Vec<FieldError>),
    #[error("no such address")]
    NoSuchRoute,
    #[error("the address does not take this method")]
    NoSuchMethod,
    #[error("no such license, or it is not active")]
    LicenseNotFound,
    #[error("no such session")]
    SessionNotFound,
    #[error("no such job")]
    JobNotFound,
    #[error("the license key is taken")]
    LicenseKeyTaken,
    #[error("a revoked license stays revoked")]
    LicenseRevoked,
    #[error("no such batch of usage")]
    UsageBatchNotFound,
    #[error("the batch of usage is not dead")]
    UsageBatchNotDead,
    #[error("no such plan")]
    PlanNotFound,
    #[error("the plan's name is taken")]
    PlanNameTaken,
    #[error("the plan is retired")]
    PlanRetired,
    #[error("no such subscription")]
    SubscriptionNotFound,
    #[error("the user has a subscription already")]
    SubscriptionExists,
    #[error("the subscription is over")]
    SubscriptionOver,
    #[error("the entry is at version {current}, and the change is for another version")]
    VersionConflict { current: u64 },
    #[error("the idempotency key was used for another request")]
    IdempotencyKeyReused,
    #[error("registry time stands still, or the clock of the registry's server was set a short time ago")]
    ClockUnsettled,
    #[error(
        "registry time is more than a day ahead of the time accounted for, and no operator has confirmed it"
    )]
    TimeUnconfirmed,
    #[error("no limit of the subscriber's is known that holds at present")]
    LimitUnknown,
    #[error("the node or the session has the maximum of event streams open")]
    TooManyStreams,
    #[error("the event streams of the caller on this node have reached the limit of {max}")]
    CallerStreamsOpen { max: usize },
    #[error("another reconciliation is under way")]
    ReconciliationUnderWay,
    #[error("a capacity was denied to its own user")]
    CapacityDenied,
    #[error("this node should not be asked at present")]
    Unready(#[from] Unready),
    #[error("the registry has no answer")]
    Registry(#[from] seatkeeper_registry::Error),
    #[error("the ledger has no answer")]
    Ledger(#[source] seatkeeper_ledger::Error),
    #[error("the other nodes cannot be reached")]
    OthersUnreachable(#[from] redis::RedisError),
    #[error("Redis is not connected")]
    RedisNotConnected,
    #[error("the connection that other nodes are heard by was lost")]
    NoticesLost,
    #[error("the record was not on disk in time")]
    NotDurable,
    #[error("the request took too long")]
    TimedOut,
    #[error("work on the request was cut off")]
    CutOff(#[from] tokio::task::JoinError),
    #[error("a handler panicked")]
    Panicked,
    #[error("this region is not the home of the request's pool")]
    WrongRegion { home: Home },
    #[error("the home of subscriber {user} of tenant {tenant} is on its way to another region")]
    HomeMoving { tenant: TenantId, user: UserId },
    #[error("region {lost} is lost, and this region is taking over its pools")]
    RegionAdopting { lost: Region },
    #[error("the pool is adopted from a lost region, and admits nobody yet")]
    AdoptedSilent { wait_seconds: u64 },
    #[error("the region cannot be adopted: {0}")]
    RegionNotAdoptable(String),
    #[error("the subscriber's home is region {}", home.region)]
    HomeElsewhere { home: Home },
    #[error("the home cannot move: {0}")]
    HomeNotMovable(String),
    #[error("the request carries no token of a peer region that this region accepts")]
    RegionTokenRefused(#[source] Option<jsonwebtoken::errors::Error>),
    #[error(
        "tenant {tenant} has anchor region {recorded} on record, and {named} in the settings of a region"
    )]
    RegionSettingsDiffer { tenant: TenantId, recorded: Region, named: Region },
    #[error("the number of region {peer} belongs to another deployment than the one that asks")]
    RegionNumberTaken { peer: Region },
    #[error("region {lost} is lost, and region {successor} has adopted its pools")]
    RegionAdopted { lost: Region, successor: Region },
    #[error("region {peer} refuses this deployment: its region's number belongs to another deployment")]
    RegionNumberRefused { peer: Region },
    #[error("no peer region has accepted this new deployment yet")]
    RegionUnconfirmed,
    #[error("region {peer} cannot answer")]
    RegionUnavailable { peer: Region, source: PeerFault },
    #[error("region {0} is not among the peers in the settings")]
    RegionUnknown(Region),
    #[error("an answer could not be written")]
    Unwritable(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl Error {
    /// Returns the error with the chain of its causes, for the log.
    pub(crate) fn with_causes(&self) -> String {
        seatkeeper_engine::with_causes(self)
    }

    /// Maps an error of a write to a license, plan or subscription. `missing` is the error for a missing
    /// record.
    #[expect(clippy::wildcard_enum_match_arm, reason = "all other errors of the ledger stay what they are")]
    pub(crate) fn of_write(error: seatkeeper_ledger::Error, missing: Self) -> Self {
        use seatkeeper_ledger::Error as Ledger;
        match error {
            Ledger::DuplicateKey => Self::LicenseKeyTaken,
            Ledger::IdempotencyMismatch => Self::IdempotencyKeyReused,
            Ledger::NotFound => missing,
            Ledger::VersionConflict { current } => Self::VersionConflict { current },
            Ledger::Revoked => Self::LicenseRevoked,
            Ledger::DuplicatePlan => Self::PlanNameTaken,
            Ledger::PlanRetired => Self::PlanRetired,
            Ledger::UnknownPlan => Self::field("plan", "must be a plan that there is"),
            Ledger::SubscriptionExists => Self::SubscriptionExists,
            Ledger::SubscriptionOver => Self::SubscriptionOver,
            Ledger::EndsBeforeStart => Self::field("ends_at", "must be later than starts_at"),
            Ledger::EndsInThePast => {
                Self::field("ends_at", "must lie ahead; to end a subscription now, cancel it")
            }
            error => Self::Ledger(error),
        }
    }

    /// Returns whether the ledger may have committed a write that failed with this error. Any other error is a refusal: the
    /// write changed nothing.
    pub(crate) fn is_outcome_unknown(&self) -> bool {
        matches!(self, Self::Ledger(seatkeeper_ledger::Error::Unavailable(_)))
    }

    /// Returns `Invalid` with a single field.
    pub(crate) fn field(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::Invalid(vec![FieldError { field: field.into(), message: message.into() }])
    }
}

impl From<auth::Error> for Error {
    fn from(error: auth::Error) -> Self {
        match error {
            auth::Error::Refused(refusal) => Self::Unauthenticated(refusal),
            auth::Error::NoKeys => Self::NoKeys,
            auth::Error::CutOff(error) => Self::CutOff(error),
        }
    }
}

impl From<seatkeeper_engine::Error> for Error {
    fn from(error: seatkeeper_engine::Error) -> Self {
        use seatkeeper_engine::Error as Engine;
        match error {
            Engine::Unready(unready) => Self::Unready(unready),
            Engine::Registry(error) => Self::Registry(error),
            Engine::Ledger(error) => Self::Ledger(error),
            Engine::NotDurable | Engine::NotClosed => Self::NotDurable,
            Engine::NotHome(pool) => Self::HomeMoving { tenant: pool.tenant, user: UserId::new(&*pool.name) },
        }
    }
}
