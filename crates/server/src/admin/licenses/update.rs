//! Change of a license.

use axum::extract::State;
use chrono::{DateTime, Utc};
use garde::Validate;
use seatkeeper_core::Seats;
use seatkeeper_ledger::licenses::{Clients, CountPer, LicenseChange, LicenseId, Reacquire, Status};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::LicenseAnswer;
use super::apply::Apply;
use crate::admin::fields::{
    GRACE_SECONDS_MAX, SEATS_MAX, date_change_field, name_change_field, named, present, time_of,
    ttl_change_field,
};
use crate::admin::idempotency::IdempotencyKey;
use crate::admin::versions::{IfMatch, Versioned};
use crate::admin::write::AdminWrite;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Body, BodyProblems, IdPath, Meta, Problems, VersionProblems};
use crate::problem::Problem;

/// The changes of a license. Absent fields stay unchanged; `null` removes a value.
#[derive(Serialize, Deserialize, Validate, ToSchema)]
pub(crate) struct Update {
    /// Number of seats. A lower number ends no session; the next admission applies the limit.
    #[garde(range(max = SEATS_MAX))]
    #[schema(maximum = 1_000_000)]
    max_seats: Option<u32>,
    /// `active`, `suspended` or `revoked`. A suspended or revoked license ends every session at once.
    #[garde(skip)]
    #[schema(value_type = Option<String>, examples("active", "suspended", "revoked"))]
    #[serde(default, deserialize_with = "named")]
    status: Option<Status>,
    /// End of the license.
    #[garde(custom(date_change_field))]
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<DateTime<Utc>>)]
    expires_at: Option<Option<DateTime<Utc>>>,
    /// Holder of a seat, from the next acquire on.
    #[garde(skip)]
    #[schema(value_type = Option<String>, examples("machine", "user", "process"))]
    #[serde(default, deserialize_with = "named")]
    count_per: Option<CountPer>,
    /// `key`: the server issues a license token to any program with the license key. `token`: clients need a
    /// token of the issuer, and issued license tokens take no more seats.
    #[garde(skip)]
    #[schema(value_type = Option<String>, examples("token", "key"))]
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    clients: Option<Clients>,
    /// Lifetime of a session after its last heartbeat, in seconds, applied from the session's next heartbeat
    /// on.
    #[garde(custom(ttl_change_field))]
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, minimum = 2, maximum = 2_592_000)]
    ttl_seconds: Option<Option<u32>>,
    /// Time that a client goes on without a session while the server is unreachable, in seconds. Clients learn of a
    /// change by acquires and heartbeats.
    #[garde(inner(range(max = GRACE_SECONDS_MAX)))]
    #[schema(maximum = 604_800)]
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_seconds: Option<u32>,
    /// `expired_only`: a client acquires again by itself after its session has expired. `never`: a client leaves
    /// that to its user.
    #[garde(skip)]
    #[schema(value_type = Option<String>, examples("expired_only", "never"))]
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    reacquire: Option<Reacquire>,
    /// Contact for more seats or time.
    #[garde(custom(name_change_field))]
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, min_length = 1, max_length = 255)]
    contact: Option<Option<String>>,
}

/// `PATCH /licenses/{license_id}`: changes a license. The change binds the live sessions at once.
#[utoipa::path(
    patch, path = "/api/v1/admin/licenses/{license_id}", tag = "admin", operation_id = "update_license",
    security(("bearer" = [])), request_body = Update,
    params(
        ("license_id" = Uuid, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "Repeats of one request under one key change it once"),
        ("If-Match" = Option<String>, Header, description = "The version that the change is based on, such as `\"3\"`: at another version nothing changes")
    ),
    responses(
        Problems, AdminProblems, BodyProblems, VersionProblems,
        (status = 200, body = LicenseAnswer, headers(("ETag" = String, description = "The version, for `If-Match`"))),
        (status = 404, body = Problem, description = "license-not-found"),
        (status = 409, body = Problem, description = "license-revoked"),
        (status = 422, body = Problem, description = "invalid-request, idempotency-key-reused")
    )
)]
pub(crate) async fn update(
    State(app): State<App>,
    who: Admin,
    meta: Meta,
    key: IdempotencyKey,
    version: IfMatch,
    IdPath(id): IdPath,
    Body(ask): Body<Update>,
) -> Result<Versioned<LicenseAnswer>, Error> {
    let apply = Apply {
        write: AdminWrite::with_key(&who, &meta, key, &format!("update license {id}"), &ask)?
            .if_match(version),
        id: LicenseId(id),
        change: ask.change(),
    };
    let written = apply.run(app.clone()).await?;
    Ok(LicenseAnswer::read(&app, &written.value).await.versioned())
}

impl Update {
    fn change(self) -> LicenseChange {
        LicenseChange {
            max_seats: self.max_seats.map(Seats),
            status: self.status,
            expires_at: self.expires_at.map(time_of),
            count_per: self.count_per,
            clients: self.clients,
            ttl_seconds: self.ttl_seconds,
            grace_seconds: self.grace_seconds,
            reacquire: self.reacquire,
            contact: self.contact,
        }
    }
}
