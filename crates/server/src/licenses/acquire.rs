//! Acquires a seat of a license.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use garde::Validate;
use seatkeeper_core::{Claim, Denial, Holder, Particulars, PoolKind, RegistryTime, Seats, Span, Tier};
use seatkeeper_ledger::licenses::{Clients, CountPer, License, Reacquire};
use seatkeeper_registry::{Answer, Granted, Live, Request};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::policy::policy_of;
use crate::app::App;
use crate::auth::{Caller, machine_user};
use crate::error::Error;
use crate::holders::{HoldersUnread, PoolHolders};
use crate::http::{
    BodyProblems, ClientObject, ClientProgram, LicenseCaller, Meta, Problems, Unread,
    heartbeat_interval_seconds, name_field, object_field, optional_name_field, user_agent_field,
};
use crate::metrics::AcquireFailure;
use crate::problem::{self, Problem};
use crate::release_codes::CodeHolder;
use crate::retry_after::wait_seconds;
use crate::times::text_of;

/// A request for a seat.
#[derive(Deserialize, Validate, ToSchema)]
pub(super) struct Acquire {
    /// The license key.
    #[garde(custom(name_field))]
    #[schema(min_length = 1, max_length = 255)]
    license_key: String,
    /// The requesting machine, by a stable name.
    #[garde(custom(name_field))]
    #[schema(min_length = 1, max_length = 255)]
    machine_id: String,
    /// The process on the machine. Required if the license counts per process.
    #[garde(custom(optional_name_field))]
    #[schema(min_length = 1, max_length = 255)]
    instance_id: Option<String>,
    /// The program's own name, for the record.
    #[garde(custom(user_agent_field))]
    #[schema(max_length = 500)]
    user_agent: Option<String>,
    /// The program and its client library, for the record in place of an absent `user_agent`.
    #[garde(dive)]
    #[serde(default, deserialize_with = "ClientProgram::optional")]
    client: Option<ClientProgram>,
    /// Custom data of the client for the record: at most 4 KiB, and at most 100 levels deep.
    #[garde(custom(object_field))]
    #[schema(value_type = Option<Object>)]
    metadata: Option<ClientObject>,
}

/// A granted seat.
#[derive(Serialize, ToSchema)]
pub(super) struct Acquired {
    session_id: Uuid,
    license_id: Uuid,
    license_key: String,
    started_at: String,
    expires_at: String,
    seats_used: u32,
    seats_remaining: u32,
    seats_total: u32,
    /// Seconds until the seat is lost without a heartbeat.
    expires_in_seconds: u64,
    heartbeat_interval_seconds: u64,
    /// Seconds that the client may go on without a session while the server is unreachable.
    grace_seconds: u32,
    /// `expired_only`: the client acquires again by itself after an expiry. `never`: the user decides.
    #[schema(value_type = String, examples("expired_only", "never"))]
    reacquire: Reacquire,
    /// Code with which the holder releases the session without a token.
    release_code: String,
    /// `acquired`: a new session. `resumed`: the holder's existing session.
    status: AcquiredStatus,
}

#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum AcquiredStatus {
    Acquired,
    Resumed,
}

/// `POST /acquire`: takes a seat of a license, or resumes the holder's session.
#[utoipa::path(
    post, path = "/api/v1/licenses/acquire", tag = "licenses", request_body = Acquire, security(("bearer" = [])),
    responses(
        Problems, BodyProblems,
        (status = 201, body = Acquired, description = "A seat was taken"),
        (status = 200, body = Acquired, description = "The holder's session goes on"),
        (status = 403, body = Problem, description = "license-full, license-expired"),
        (status = 404, body = Problem, description = "license-not-found"),
        (status = 429, body = Problem, description = "too-many-requests")
    )
)]
pub(super) async fn acquire(
    State(app): State<App>,
    who: LicenseCaller,
    meta: Meta,
    body: Unread,
) -> Result<Response, Error> {
    // The body is read once the rate limit lets the request pass, so that a throttled request costs little.
    // The box keeps the future of the handler small, which is moved several times.
    let acquire = Box::pin(take_seat(&app, &who, &meta, body));
    app.limits.acquire(PoolKind::License, &who, &meta.standing, acquire).await
}

async fn take_seat(app: &App, who: &Caller, meta: &Meta, body: Unread) -> Result<Response, Error> {
    let ask: Acquire = body.read(app).await?;
    let metrics = &app.metrics.acquires;
    metrics.asked();
    let decided = decide(app, who, meta, &ask).await;
    match &decided {
        Ok(Decided { failure: Some(failure), .. }) => metrics.failed(*failure),
        Ok(Decided { failure: None, .. }) => {}
        Err(error) => metrics.failed(error.into()),
    }
    decided.map(|decided| decided.answer)
}

/// The outcome of a request.
struct Decided {
    answer: Response,
    /// The reason for a denial; `None` for a granted seat.
    failure: Option<AcquireFailure>,
}

async fn decide(app: &App, who: &Caller, meta: &Meta, ask: &Acquire) -> Result<Decided, Error> {
    let license = license_of(app, who, ask).await?;
    let claim = ask.claim(&license, who)?;
    let pool = license.pool();
    let request = Request {
        pool: &pool,
        claim: &claim,
        policy: &policy_of(&license, &app.settings.licenses),
        origin: &meta.origin(who.as_user()),
        particulars: &ask.particulars(meta),
    };
    let claim = app.engine.claim(request, app.settings.licenses.durability);
    let pool_holders = app.holders.pool(&pool);
    let (claimed, holders) = tokio::join!(claim, expected_holders(app, who, pool_holders));
    let claimed = claimed?;
    let (answer, failure) = match claimed.answer {
        Answer::Granted { how, session, .. } => {
            let code = app
                .release_codes
                .sign((PoolKind::License, session.session.id), &CodeHolder::from_caller(who));
            let granted = granted(&license, how, &session, (claimed.live, claimed.limit), code);
            (granted.into_response(), None)
        }
        Answer::Denied(Denial::Full { free_in }) => {
            let holders = match holders {
                Some(holders) => holders.ok(),
                None if shows_holders(app, who) => pool_holders.list(&app.engine).await.ok(),
                None => None,
            };
            pool_holders.note_full();
            (full(claimed.limit, free_in, holders.as_deref()), Some(AcquireFailure::Full))
        }
        Answer::Denied(Denial::EntitlementOver { ended_at }) => {
            (expired(app, &license, ended_at).into_response(), Some(AcquireFailure::Expired))
        }
        Answer::Denied(Denial::EntitlementClosed) => return Err(Error::LicenseNotFound),
    };
    Ok(Decided { answer, failure })
}

/// Returns the license of a request. A caller with a license token gets the license of the token alone, and on the machine
/// of the token alone.
async fn license_of(app: &App, who: &Caller, ask: &Acquire) -> Result<Arc<License>, Error> {
    let licenses = &app.entitlements.licenses;
    let Some(only) = who.scopes.license else { return licenses.license(&who.tenant, &ask.license_key).await };
    let fits = |license: &License| license.id == only && license.clients == Clients::Key;
    let license = licenses.license_that(&who.tenant, &ask.license_key, fits).await?;
    if who.user != machine_user(license.id, &ask.machine_id) {
        return Err(Error::field("machine_id", "must be the machine that the license token was made for"));
    }
    Ok(license)
}

impl Acquire {
    fn claim(&self, license: &License, who: &Caller) -> Result<Claim, Error> {
        Ok(Claim {
            holder: self.holder(license.count_per, who)?,
            user: who.user.clone(),
            tier: Tier::default(),
            session: None,
            replace: None,
        })
    }

    /// Returns the holder of the seat, by the license's `count_per`.
    fn holder(&self, count_per: CountPer, who: &Caller) -> Result<Holder, Error> {
        match (count_per, &self.instance_id) {
            (CountPer::Machine, _) => Ok(Holder::new(self.machine_id.as_str())),
            (CountPer::User, _) => Ok(Holder::new(who.user.as_str())),
            (CountPer::Process, Some(instance)) => Ok(Holder::process(&self.machine_id, instance)),
            (CountPer::Process, None) => {
                Err(Error::field("instance_id", "is needed: this license counts per process"))
            }
        }
    }

    fn particulars(&self, meta: &Meta) -> Particulars {
        let of_client = || self.client.as_ref().map(ClientProgram::to_user_agent);
        let user_agent = self.user_agent.clone().or_else(of_client);
        let metadata = self.metadata.as_ref().and_then(|object| serde_json::to_string(object).ok());
        Particulars {
            ip: meta.ip,
            user_agent: user_agent.map(Into::into),
            metadata: metadata.map(Into::into),
            device: None,
        }
    }
}

fn granted(
    license: &License,
    how: Granted,
    live: &Live,
    (seats_used, limit): (u32, Seats),
    release_code: String,
) -> (StatusCode, axum::Json<Acquired>) {
    let (code, status) = match how {
        Granted::Admitted => (StatusCode::CREATED, AcquiredStatus::Acquired),
        Granted::Refreshed | Granted::Resumed | Granted::Existing => {
            (StatusCode::OK, AcquiredStatus::Resumed)
        }
    };
    let answer = Acquired {
        session_id: live.session.id.as_uuid(),
        license_id: license.id.0,
        license_key: license.key.reveal().into(),
        started_at: text_of(live.session.started),
        expires_at: text_of(live.expires),
        seats_used,
        seats_remaining: limit.0.saturating_sub(seats_used),
        seats_total: limit.0,
        expires_in_seconds: live.expires_in.as_secs_floor(),
        heartbeat_interval_seconds: heartbeat_interval_seconds(live.session.ttl),
        grace_seconds: license.grace_seconds,
        reacquire: license.reacquire,
        release_code,
        status,
    };
    (code, axum::Json(answer))
}

/// Reads the holders while the claim runs, if the license was full a moment ago: then the claim is most likely
/// denied, and the denial is not delayed by the read. Returns `None` without a read.
async fn expected_holders(
    app: &App,
    who: &Caller,
    holders: PoolHolders<'_>,
) -> Option<Result<Arc<RawValue>, HoldersUnread>> {
    let is_expected = shows_holders(app, who) && holders.was_full();
    if is_expected { Some(holders.list(&app.engine).await) } else { None }
}

/// Returns whether a denial names the holders. A caller with a license token sees no holders: a license token is
/// issued for any machine by name, so the name of another machine would open the seat of that machine.
fn shows_holders(app: &App, who: &Caller) -> bool {
    app.settings.licenses.show_holders && who.scopes.license.is_none()
}

/// Builds the answer of a full license. The answer has no `holders` if the holders are not shown, or could not be read.
fn full(limit: Seats, free_in: Option<Span>, holders: Option<&RawValue>) -> Response {
    let problem = Problem::new(&problem::LICENSE_FULL, "Ask again after `retry_after_seconds`.")
        .with("seats_available", 0)
        .with("seats_total", limit.0)
        .retry_after(wait_seconds(free_in));
    match holders {
        Some(holders) => problem.with("holders", holders).into_response(),
        None => problem.into_response(),
    }
}

fn expired(app: &App, license: &License, at: RegistryTime) -> Problem {
    let problem = Problem::new(&problem::LICENSE_EXPIRED, "The license is past its date.")
        .with("expired_at", text_of(at));
    let contact = license.contact.as_ref().or(app.settings.licenses.contact_support.as_ref());
    match contact {
        Some(contact) => problem.with("contact_support", contact.as_str()),
        None => problem,
    }
}
