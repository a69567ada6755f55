//! The problems of answers (RFC 9457), and the single mapping from errors to problems. Each kind has a page
//! in `docs/problems/`.

use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use seatkeeper_core::{TenantId, UserId};
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use utoipa::ToSchema;

use crate::error::Error;

/// A kind of problem: name, status, title and page.
#[derive(Debug, PartialEq, Eq)]
pub struct ProblemKind {
    /// The last segment of the `type`, and the name of the page in `docs/problems/`.
    pub name: &'static str,
    /// The HTTP status.
    pub status: u16,
    /// A short sentence, also sent as `error`.
    pub title: &'static str,
    /// The page in Markdown, linked by `type`: the cause and the remedy.
    pub page: &'static str,
}

/// The content type of a problem.
pub(crate) const MEDIA_TYPE: &str = "application/problem+json";

/// Returns the page of the kind `name`.
pub(crate) fn page(name: &str) -> Option<&'static str> {
    PROBLEMS.iter().find(|kind| kind.name == name).map(|kind| kind.page)
}

macro_rules! problems {
    ($($constant:ident = $name:literal, $status:literal, $title:literal;)*) => {
        $(pub(crate) static $constant: ProblemKind = ProblemKind {
            name: $name,
            status: $status,
            title: $title,
            page: include_str!(concat!("../../../docs/problems/", $name, ".md")),
        };)*
        /// All kinds of problems.
        pub static PROBLEMS: &[&ProblemKind] = &[$(&$constant),*];
    };
}

problems! {
    UNAUTHENTICATED = "unauthenticated", 401, "A valid bearer token is required";
    NOT_ADMIN = "admin-scope-required", 403, "The admin scope is required";
    NOT_SERVICE = "service-scope-required", 403, "The service scope is required";
    NOT_CAPACITY_OWNER = "capacity-of-another-user", 403, "The capacity is another user's";
    TOO_OFTEN = "too-many-requests", 429, "Too many requests";
    TOO_MANY_STREAMS = "too-many-event-streams", 429, "Too many event streams are open";
    INVALID_HOST = "invalid-host", 400, "A single valid Host header is required";
    NOT_JSON = "not-json", 400, "The body is not JSON";
    BODY_TOO_SLOW = "body-too-slow", 408, "The body did not arrive in time";
    BODY_TOO_LARGE = "body-too-large", 413, "The body is too large";
    INVALID = "invalid-request", 422, "The request is not valid";
    NOT_FOUND = "not-found", 404, "Nothing is here";
    METHOD_NOT_ALLOWED = "method-not-allowed", 405, "The method is not allowed here";
    LICENSE_NOT_FOUND = "license-not-found", 404, "License not found or inactive";
    LICENSE_FULL = "license-full", 403, "All license seats are currently in use";
    LICENSE_EXPIRED = "license-expired", 403, "License has expired";
    LICENSE_KEY_TAKEN = "license-key-taken", 409, "The license key is taken";
    LICENSE_REVOKED = "license-revoked", 409, "The license is revoked for good";
    DEVICES_FULL = "devices-full", 403, "All screens of the plan are in use";
    GROUPS_OFF = "groups-off", 403, "Devices do not watch together here";
    GROUP_FULL = "group-full", 403, "The group is full";
    GROUP_CONTENT = "group-content", 403, "The group watches other content";
    GROUP_JOINED_TOO_OFTEN = "group-joined-too-often", 429, "Too many devices have joined the group";
    JOIN_CODE_REFUSED = "join-code-refused", 403, "The join code does not count";
    PLAN_NOT_FOUND = "plan-not-found", 404, "Plan not found";
    PLAN_NAME_TAKEN = "plan-name-taken", 409, "The plan's name is taken";
    PLAN_RETIRED = "plan-retired", 409, "The plan is retired";
    SUBSCRIPTION_NOT_FOUND = "subscription-not-found", 404, "Subscription not found";
    SUBSCRIPTION_EXISTS = "subscription-exists", 409, "The user has a subscription already";
    SUBSCRIPTION_OVER = "subscription-over", 409, "The subscription is over";
    SESSION_NOT_FOUND = "session-not-found", 404, "Session not found";
    JOB_NOT_FOUND = "job-not-found", 404, "Job not found";
    SESSION_EXPIRED = "session-expired", 410, "Session has expired";
    SESSION_ENTITLEMENT_ENDED = "session-entitlement-ended", 410, "The session's entitlement has ended";
    SESSION_ENDED = "session-ended", 410, "The session has ended";
    USAGE_BATCH_NOT_FOUND = "usage-batch-not-found", 404, "Usage batch not found";
    USAGE_BATCH_NOT_DEAD = "usage-batch-not-dead", 409, "The usage batch is not dead";
    VERSION_CONFLICT = "version-conflict", 412, "The version has changed";
    IDEMPOTENCY_KEY_REUSED = "idempotency-key-reused", 422, "The Idempotency-Key was used for another request";
    WRONG_REGION = "wrong-region", 421, "This region is not the home";
    REGION_TOKEN_REFUSED = "region-token-refused", 421, "The token of the region is refused";
    REGION_NUMBER_TAKEN = "region-number-taken", 421, "The region's number belongs to another deployment";
    REGION_SETTINGS_DIFFER = "region-settings-differ", 503, "The regions' settings differ";
    REGION_UNAVAILABLE = "region-unavailable", 503, "Another region cannot answer now";
    REGION_ADOPTING = "region-adopting", 503, "A lost region's pools are being taken over";
    REGION_NOT_ADOPTABLE = "region-not-adoptable", 409, "The region cannot be adopted";
    HOME_MOVING = "home-moving", 503, "The subscriber's home is moving";
    HOME_ELSEWHERE = "home-elsewhere", 409, "The subscriber's home is another region";
    HOME_NOT_MOVABLE = "home-not-movable", 409, "The subscriber's home cannot move now";
    REGION_UNKNOWN = "region-unknown", 503, "The home region is not in the settings";
    UNAVAILABLE = "unavailable", 503, "The service cannot answer now";
    INTERNAL = "internal", 500, "Something went wrong on our side";
}

/// The body of an answer that is not a success.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// The kind of problem, as the path of its page on this server.
    #[serde(rename = "type")]
    kind: String,
    /// A short sentence, equal for all problems of the kind.
    title: &'static str,
    /// The HTTP status.
    status: u16,
    /// An explanation of this occurrence, for the caller.
    detail: String,
    /// The title, for older clients.
    error: &'static str,
    /// Further members for programs, by kind.
    #[serde(flatten)]
    #[schema(value_type = Object, additional_properties)]
    members: Members,
    #[serde(skip)]
    retry_after_seconds: Option<u64>,
}

/// Members of a problem, serialised early. A denial lists many holders, many times a second.
#[derive(Debug, Default)]
struct Members(Vec<(&'static str, Box<RawValue>)>);

impl Serialize for Members {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// The pause that a caller of an unavailable server is asked for.
const UNAVAILABLE_RETRY_AFTER_SECONDS: u64 = 1;

/// The pause that a caller with too many event streams is asked for. The server may notice a lost connection only at the next
/// comment of the stream.
const STREAM_RETRY_AFTER_SECONDS: u64 = 10;

impl Problem {
    pub(crate) fn new(kind: &'static ProblemKind, detail: impl Into<String>) -> Self {
        Self {
            kind: format!("/problems/{}", kind.name),
            title: kind.title,
            status: kind.status,
            detail: detail.into(),
            error: kind.title,
            members: Members::default(),
            retry_after_seconds: None,
        }
    }

    /// Returns whether the server could not decide, rather than refused the request.
    pub(crate) fn is_server_error(&self) -> bool {
        self.status >= 500
    }

    /// Adds a member for programs.
    pub(crate) fn with(mut self, name: &'static str, value: impl Serialize) -> Self {
        // Serialisation of texts, numbers and lists of them cannot fail.
        self.members.0.extend(to_raw_value(&value).map(|value| (name, value)));
        self
    }

    /// Sets the time of a retry, in the body and in the header.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_seconds = Some(seconds);
        self.with("retry_after_seconds", seconds)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let detail = error.to_string();
        match error {
            Error::Unauthenticated(_) => Self::new(
                &UNAUTHENTICATED,
                "Send `Authorization: Bearer <token>` with a token that is signed for this server and has not expired.",
            ),
            Error::NotAdmin => Self::new(&NOT_ADMIN, "The token's scope does not list `admin`."),
            Error::NotService => Self::new(
                &NOT_SERVICE,
                "The tenant is not the token's own, and the token's scope does not list `service`.",
            ),
            Error::NotCapacityOwner => Self::new(
                &NOT_CAPACITY_OWNER,
                "`userObjectId` is not the token's subject, and the token's scope lists neither `service` nor `admin`.",
            ),
            Error::TooOften { wait_seconds } => {
                Self::new(&TOO_OFTEN, "Ask again after `retry_after_seconds`.").retry_after(wait_seconds)
            }
            Error::CallerStreamsOpen { max } => {
                Self::new(&TOO_MANY_STREAMS, format!("Your event streams have reached the limit of {max}; close one first."))
                    .retry_after(STREAM_RETRY_AFTER_SECONDS)
            }
            Error::InvalidHost => {
                Self::new(&INVALID_HOST, "Send one `Host` header with the server's host and port.")
            }
            Error::NotJson(why) => Self::new(&NOT_JSON, format!("The body does not parse: {why}.")),
            Error::NotUtf8(why) => Self::new(&NOT_JSON, format!("The body is not UTF-8: {why}.")),
            Error::BodyUnreadable(_) => Self::new(&NOT_JSON, "The body ended before it was whole."),
            Error::BodyTooSlow => Self::new(&BODY_TOO_SLOW, "Send the same request again."),
            Error::BodyTooLarge => Self::new(&BODY_TOO_LARGE, "A body may have at most 65,536 bytes."),
            Error::Invalid(errors) => {
                Self::new(&INVALID, "Some fields are not as they must be; see `errors`.")
                    .with("errors", errors)
            }
            Error::NoSuchRoute => Self::new(
                &NOT_FOUND,
                "No part of the API has this address: the server's URL has a wrong path, or the client is of another \
                 version than the server.",
            ),
            Error::NoSuchMethod => Self::new(&METHOD_NOT_ALLOWED, "See the `Allow` header."),
            Error::LicenseNotFound => {
                Self::new(&LICENSE_NOT_FOUND, "There is no active license of yours by this name.")
            }
            Error::SessionNotFound => {
                Self::new(&SESSION_NOT_FOUND, "There is no session of yours by this id.")
            }
            Error::JobNotFound => Self::new(&JOB_NOT_FOUND, "This server runs no job by this name."),
            Error::LicenseKeyTaken => Self::new(&LICENSE_KEY_TAKEN, "Another license has this key."),
            Error::LicenseRevoked => {
                Self::new(&LICENSE_REVOKED, "A revoked license cannot be changed; create another.")
            }
            Error::UsageBatchNotFound => {
                Self::new(&USAGE_BATCH_NOT_FOUND, "There is no batch of your tenant's by this id.")
            }
            Error::UsageBatchNotDead => {
                Self::new(&USAGE_BATCH_NOT_DEAD, "It is delivered, or on its way already.")
            }
            Error::PlanNotFound => Self::new(&PLAN_NOT_FOUND, "There is no plan of yours by this name."),
            Error::PlanNameTaken => Self::new(&PLAN_NAME_TAKEN, "Another plan has this name."),
            Error::PlanRetired => {
                Self::new(&PLAN_RETIRED, "A retired plan takes no new subscription; choose another.")
            }
            Error::SubscriptionNotFound => {
                Self::new(&SUBSCRIPTION_NOT_FOUND, "There is no subscription of yours by this id.")
            }
            Error::SubscriptionExists => Self::new(
                &SUBSCRIPTION_EXISTS,
                "Change the subscription that the user has, or cancel it first.",
            ),
            Error::SubscriptionOver => Self::new(
                &SUBSCRIPTION_OVER,
                "One that is cancelled or has expired cannot be changed; create another.",
            ),
            Error::VersionConflict { current } => Self::new(
                &VERSION_CONFLICT,
                "Another change came first: read the present state, and send the change with its version.",
            )
            .with("version", current),
            Error::IdempotencyKeyReused => Self::new(
                &IDEMPOTENCY_KEY_REUSED,
                "This Idempotency-Key came with another request before; use a new one.",
            ),
            Error::WrongRegion { home } => Self::new(&WRONG_REGION, "The pool's home is region `home`.")
                .with("home", home.region.number())
                .with("version", home.version),
            Error::HomeMoving { .. } => Self::new(&HOME_MOVING, "Nothing is lost: ask for the same again.")
                .retry_after(UNAVAILABLE_RETRY_AFTER_SECONDS),
            Error::RegionAdopting { .. } => {
                Self::new(&REGION_ADOPTING, "The records of the pool are still being taken over.")
                    .retry_after(UNAVAILABLE_RETRY_AFTER_SECONDS)
            }
            Error::AdoptedSilent { wait_seconds } => Self::new(
                &REGION_ADOPTING,
                "Sessions that are not on record may live for a while: live sessions go on, and new sessions begin later.",
            )
            .retry_after(wait_seconds),
            Error::RegionNotAdoptable(detail) => Self::new(&REGION_NOT_ADOPTABLE, detail),
            Error::HomeElsewhere { home } => {
                let detail = "The subscription that counts is in region `home`: change that one.";
                Self::new(&HOME_ELSEWHERE, detail).with("home", home.region.number())
            }
            Error::HomeNotMovable(detail) => Self::new(&HOME_NOT_MOVABLE, detail),
            Error::RegionTokenRefused(_) => Self::new(
                &REGION_TOKEN_REFUSED,
                "The token must be signed with a key of the sending region, for this region, in the last minute.",
            ),
            Error::RegionSettingsDiffer { .. } => Self::new(
                &REGION_SETTINGS_DIFFER,
                "The tenant's anchor region is not the region on record; an operator must act.",
            )
            .retry_after(UNAVAILABLE_RETRY_AFTER_SECONDS),
            Error::RegionNumberTaken { .. } => Self::new(
                &REGION_NUMBER_TAKEN,
                "Two deployments use one region's number and key; an operator must act.",
            ),
            Error::RegionAdopted { successor, .. } => Self::new(
                &REGION_NUMBER_TAKEN,
                "Region `adopted_by` has adopted the pools of the region: stop the servers of the region.",
            )
            .with("adopted_by", successor.number()),
            Error::RegionNumberRefused { .. } => Self::new(
                &REGION_SETTINGS_DIFFER,
                "Another deployment has the number of this region; an operator must act.",
            )
            .retry_after(UNAVAILABLE_RETRY_AFTER_SECONDS),
            Error::RegionUnavailable { .. } | Error::RegionUnconfirmed => {
                Self::new(&REGION_UNAVAILABLE, "Nothing is lost: ask for the same again.")
                    .retry_after(UNAVAILABLE_RETRY_AFTER_SECONDS)
            }
            Error::RegionUnknown(_) => Self::new(
                &REGION_UNKNOWN,
                "The settings of this region lack the home region; an operator must act.",
            )
            .retry_after(UNAVAILABLE_RETRY_AFTER_SECONDS),
            Error::Registry(_)
            | Error::OthersUnreachable(_)
            | Error::NotDurable
            | Error::TooBusy
            | Error::Uncounted
            | Error::TimedOut
            | Error::LimitUnknown
            | Error::ClockUnsettled
            | Error::TimeUnconfirmed
            | Error::TooManyStreams
            | Error::ReconciliationUnderWay => {
                Self::new(&UNAVAILABLE, "Nothing is lost: ask for the same again.")
                    .retry_after(UNAVAILABLE_RETRY_AFTER_SECONDS)
            }
            Error::NoKeys => Self::new(
                &UNAVAILABLE,
                "The server has no key to check tokens with: the issuer of tokens publishes none, or cannot be reached.",
            )
            .retry_after(UNAVAILABLE_RETRY_AFTER_SECONDS),
            Error::Unready(unready) => Self::new(&UNAVAILABLE, format!("Ask another node: {unready}."))
                .retry_after(UNAVAILABLE_RETRY_AFTER_SECONDS),
            Error::Ledger(seatkeeper_ledger::Error::Unavailable(_)) => {
                Self::new(&UNAVAILABLE, "Nothing is lost: ask for the same again.")
                    .retry_after(UNAVAILABLE_RETRY_AFTER_SECONDS)
            }
            Error::Ledger(_)
            | Error::CapacityDenied
            | Error::CutOff(_)
            | Error::RedisNotConnected
            | Error::NoticesLost
            | Error::Panicked
            | Error::Unwritable(_) => Self::new(&INTERNAL, format!("The log has the cause: {detail}.")),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // A problem consists of texts and numbers, so serialisation cannot fail.
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(seconds) = self.retry_after_seconds {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if matches!(status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT) {
            // The unread rest of the body would precede the next request on the connection.
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

/// The causes of a problem, for the log alone.
#[derive(Clone)]
pub(crate) struct Causes(pub(crate) String);

/// The subscriber whose home is not here any more, for the layer of regions alone.
#[derive(Clone)]
pub(crate) struct LeftHome(pub(crate) TenantId, pub(crate) UserId);

impl IntoResponse for Error {
    /// Returns the problem to the caller, and attaches the chain of causes for the log.
    fn into_response(self) -> Response {
        if matches!(self, Self::ReconciliationUnderWay) {
            // An expected refusal, not a fault: no causes for the log.
            return Problem::from(self).into_response();
        }
        let causes = self.with_causes();
        let left = if let Self::HomeMoving { tenant, user } = &self {
            Some(LeftHome(tenant.clone(), user.clone()))
        } else {
            None
        };
        let mut response = Problem::from(self).into_response();
        if let Some(left) = left {
            response.extensions_mut().insert(left);
        }
        response.extensions_mut().insert(Causes(causes));
        response
    }
}
