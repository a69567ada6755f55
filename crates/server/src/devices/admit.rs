//! Admission of a device to a screen.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use garde::Validate;
use seatkeeper_core::{
    Claim, Denial, EndReason, NotNamed, PoolKind, Replacement, SessionId, Tier, named_enum,
};
use seatkeeper_registry::{Answer, Claimed, Granted, Live, Request};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::device_request::DeviceRequest;
use super::fingerprint::fingerprint;
use super::groups::{leave_groups, leave_groups_in};
use super::in_use::{DeviceSession, listed, view_in_use};
use super::policy::{policy_of, policy_without_home};
use super::pool_of;
use crate::error::Error;
use crate::http::{
    BodyProblems, Problems, Unread, heartbeat_interval_seconds, name_field, optional_name_field,
};
use crate::problem::{self, Problem};
use crate::regions::{HomeTerms, REGION_TERMS};
use crate::release_codes::CodeHolder;
use crate::retry_after::wait_seconds;
use crate::times::text_of;

/// A request for a screen.
#[derive(Deserialize, Validate, ToSchema)]
pub(super) struct Admit {
    /// Stable name of the device.
    #[garde(custom(name_field))]
    #[schema(min_length = 1, max_length = 255)]
    device_id: String,
    /// Type of the device.
    #[garde(skip)]
    device_type: DeviceType,
    /// The owner's name for the device.
    #[garde(custom(optional_name_field))]
    #[schema(min_length = 1, max_length = 255)]
    device_name: Option<String>,
    /// Session that the device believes to hold. A live session of the device goes on, even if the network
    /// has changed.
    #[garde(skip)]
    session_id: Option<Uuid>,
    /// Session of the subscriber that may end to make room if all screens are in use.
    #[garde(skip)]
    replace_session_id: Option<Uuid>,
    /// Membership of the device in a group, which ends first. The server finds a membership in a group of the same user by
    /// itself; a guest must name its own.
    #[garde(skip)]
    group_member_session_id: Option<Uuid>,
}

named_enum! {
    /// The type of a device.
    #[derive(Deserialize, ToSchema)]
    #[serde(rename_all = "lowercase", try_from = "String")]
    pub(super) enum DeviceType else "must be `mobile`, `tv`, `browser` or `tablet`" {
        Mobile = "mobile",
        Tv = "tv",
        Browser = "browser",
        Tablet = "tablet",
    }
}

impl TryFrom<String> for DeviceType {
    type Error = NotNamed;
    fn try_from(name: String) -> Result<Self, NotNamed> {
        name.parse()
    }
}

/// A screen held by a device.
#[derive(Serialize, ToSchema)]
pub(super) struct Admitted {
    session_id: Uuid,
    /// `admitted_with_eviction`: sessions of other devices ended to make room; `refreshed`: the device's
    /// session goes on.
    outcome: Admission,
    evicted_session_ids: Vec<Uuid>,
    device_limit: u32,
    devices_in_use: u32,
    started_at: String,
    expires_at: String,
    /// Time until the screen is lost without a heartbeat, in seconds.
    expires_in_seconds: u64,
    heartbeat_interval_seconds: u64,
    /// Code with which the device releases the session without a token.
    release_code: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Admission {
    Admitted,
    AdmittedWithEviction,
    Refreshed,
}

/// Attempts of a claim. A subscription may end between look-up and claim, and the second look-up ignores the ended
/// subscription. A device that is denied a screen may be a member of a group, and claims again after it has left.
const CLAIMS_MAX: usize = 3;

/// `POST /sessions`: takes a screen for a device. On a plan that evicts, the subscriber's stalest device
/// makes room.
#[utoipa::path(
    post, path = "/api/v1/devices/sessions", tag = "devices", operation_id = "admit_device", request_body = Admit,
    security(("bearer" = [])),
    responses(
        Problems, BodyProblems,
        (status = 201, body = Admitted, description = "The device has a screen"),
        (status = 200, body = Admitted, description = "The device's session goes on"),
        (status = 403, body = Problem, description = "devices-full"),
        (status = 429, body = Problem, description = "too-many-requests")
    )
)]
pub(super) async fn admit(request: DeviceRequest, body: Unread) -> Result<Response, Error> {
    // The box keeps the future of the handler small, which is moved several times.
    request.limited(PoolKind::Subscriber, Box::pin(take_screen(&request, body))).await
}

async fn take_screen(request: &DeviceRequest, body: Unread) -> Result<Response, Error> {
    let DeviceRequest { app, who, without_home, is_forwarded, .. } = request;
    let ask: Admit = body.read(app).await?;
    // The device leaves its groups before the claim. On a plan that has given up groups, a denial brings the view of the
    // pool that tells a group, and a group without other members ends with its TTL.
    let mut has_searched_groups = match without_home {
        Some(_) => true,
        None => leave_groups(request, &ask.device_id, ask.group_member_session_id).await,
    };
    let pool = pool_of(&who.tenant, &who.user);
    let (claim, origin) = (ask.claim(request), request.origin());
    let particulars = request.particulars(ask.device_type, ask.device_name.as_deref());
    for _ in 0..CLAIMS_MAX {
        let policy = match without_home {
            Some(without_home) => policy_without_home(app, *without_home),
            None => policy_of(app, &who.tenant, &who.user).await,
        };
        let (pool, claim, policy) = (&pool, &claim, &policy);
        let claiming = Request { pool, claim, policy, origin: &origin, particulars: &particulars };
        let claimed = match without_home {
            Some(_) => app.engine.claim_without_home(claiming).await?,
            None => app.engine.claim(claiming, app.settings.devices.durability).await?,
        };
        let mut answer = match &claimed.answer {
            Answer::Granted { how, session, ended } => {
                if without_home.is_some() && *how == Granted::Admitted {
                    app.metrics.regions.admitted_alone();
                }
                let seat = (PoolKind::Subscriber, session.session.id);
                let code = app.release_codes.sign(seat, &CodeHolder::from_caller(who));
                granted(&claimed, *how, session, ended, code).into_response()
            }
            Answer::Denied(Denial::Full { free_in }) => {
                let view = view_in_use(app, pool, *without_home).await;
                if !has_searched_groups && let Ok(view) = &view {
                    has_searched_groups = true;
                    if leave_groups_in(request, &ask.device_id, view.as_ref()).await {
                        continue;
                    }
                }
                let list = match view {
                    Ok(view) => Ok(listed(app, pool, view.as_ref(), None, None).await),
                    Err(error) => Err(error),
                };
                full(claiming, &claimed, wait_seconds(*free_in), list).into_response()
            }
            Answer::Denied(Denial::EntitlementOver { .. } | Denial::EntitlementClosed) => continue,
        };
        if *is_forwarded && let Some(terms) = HomeTerms::from_policy(policy).and_then(HomeTerms::to_header) {
            answer.headers_mut().insert(REGION_TERMS, terms);
        }
        return Ok(answer);
    }
    // Only the pool's last known terms, used while the plan cannot be looked up, can be over twice.
    Err(Error::LimitUnknown)
}

impl Admit {
    fn claim(&self, DeviceRequest { who, meta, user_agent, .. }: &DeviceRequest) -> Claim {
        // A UUID outside the format of session ids counts as absent.
        let session = |uuid: Option<Uuid>| uuid.and_then(|uuid| SessionId::try_from(uuid).ok());
        Claim {
            holder: fingerprint(&self.device_id, user_agent, meta.ip),
            user: who.user.clone(),
            tier: Tier::default(),
            session: session(self.session_id),
            replace: session(self.replace_session_id)
                .map(|session| Replacement { session, is_handed_over: false }),
        }
    }
}

fn granted(
    claimed: &Claimed,
    how: Granted,
    live: &Live,
    ended: &[(SessionId, EndReason)],
    release_code: String,
) -> (StatusCode, axum::Json<Admitted>) {
    let evicted = ended.iter().filter(|(_, reason)| *reason == EndReason::Evicted);
    let evicted_session_ids: Vec<_> = evicted.map(|(id, _)| id.as_uuid()).collect();
    let (code, outcome) = match how {
        Granted::Admitted if evicted_session_ids.is_empty() => (StatusCode::CREATED, Admission::Admitted),
        Granted::Admitted => (StatusCode::CREATED, Admission::AdmittedWithEviction),
        Granted::Refreshed | Granted::Resumed | Granted::Existing => (StatusCode::OK, Admission::Refreshed),
    };
    let answer = Admitted {
        session_id: live.session.id.as_uuid(),
        outcome,
        evicted_session_ids,
        device_limit: claimed.limit.0,
        devices_in_use: claimed.live,
        started_at: text_of(live.session.started),
        expires_at: text_of(live.expires),
        expires_in_seconds: live.expires_in.as_secs_floor(),
        heartbeat_interval_seconds: heartbeat_interval_seconds(live.session.ttl),
        release_code,
    };
    (code, axum::Json(answer))
}

/// Builds the denial, with the sessions that hold the screens, so that the user can choose a session to
/// replace. If the sessions cannot be listed, the denial is sent without a list.
fn full(
    request: Request<'_>,
    claimed: &Claimed,
    wait_seconds: u64,
    in_use: Result<Vec<DeviceSession>, Error>,
) -> Problem {
    let too_many = claimed.live.saturating_sub(claimed.limit.0);
    let detail = match request.policy.terms {
        None => "Your plan cannot be looked up at present, so no session ends for another: ask again.".into(),
        Some(_) if claimed.limit.0 == 0 => "Your plan allows no device.".into(),
        Some(_) if too_many == 0 => "Name the session to end as `replace_session_id`.".into(),
        Some(_) => format!("Your plan allows {too_many} fewer than are in use: end those first."),
    };
    let problem = Problem::new(&problem::DEVICES_FULL, detail)
        .with("device_limit", claimed.limit.0)
        .with("devices_in_use", claimed.live)
        .retry_after(wait_seconds);
    match in_use {
        Ok(sessions) => problem.with("sessions", sessions),
        Err(error) => {
            tracing::warn!(
                causes = error.with_causes(),
                "listing the sessions in use failed; the denial is sent without the list"
            );
            problem
        }
    }
}
