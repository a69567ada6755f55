//! Creation of a license.

use axum::extract::State;
use axum::http::StatusCode;
use chrono::{DateTime, Utc};
use garde::Validate;
use rand::distr::{Alphanumeric, SampleString};
use seatkeeper_core::{Seats, TenantId};
use seatkeeper_ledger::licenses::{Clients, CountPer, LicenseKey, NewLicense, Reacquire, Status};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::answer::LicenseAnswer;
use crate::admin::fields::{GRACE_SECONDS_MAX, SEATS_MAX, date_field, named, time_of, ttl_field};
use crate::admin::idempotency::IdempotencyKey;
use crate::admin::versions::Versioned;
use crate::admin::write::AdminWrite;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Body, BodyProblems, Meta, Problems, optional_name_field};
use crate::problem::Problem;

/// A license to create.
#[derive(Serialize, Deserialize, Validate, ToSchema)]
pub(crate) struct Create {
    /// Key that clients of the license send; absent: the server generates a key.
    #[garde(custom(optional_name_field))]
    #[schema(min_length = 1, max_length = 255)]
    license_key: Option<String>,
    /// Number of seats: 0 to 1,000,000.
    #[garde(range(max = SEATS_MAX))]
    #[schema(maximum = 1_000_000)]
    max_seats: u32,
    /// End of the license; absent: never.
    #[garde(custom(date_field))]
    expires_at: Option<DateTime<Utc>>,
    /// Holder of a seat: each `machine` (default), `user` or `process`.
    #[garde(skip)]
    #[schema(value_type = Option<String>, examples("machine", "user", "process"))]
    #[serde(default, deserialize_with = "named")]
    count_per: Option<CountPer>,
    /// `token` (default): clients need a token of the issuer. `key`: the server issues a license token to any
    /// program with the license key.
    #[garde(skip)]
    #[schema(value_type = Option<String>, examples("token", "key"))]
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    clients: Option<Clients>,
    /// Lifetime of a session after its last heartbeat, in seconds: 2 to 2,592,000; absent: the server's
    /// setting.
    #[garde(custom(ttl_field))]
    #[schema(minimum = 2, maximum = 2_592_000)]
    ttl_seconds: Option<u32>,
    /// Time that a client goes on without a session while the server is unreachable, in seconds: 0 (default) to
    /// 604,800. A refusal by the server ends the grace.
    #[garde(inner(range(max = GRACE_SECONDS_MAX)))]
    #[schema(maximum = 604_800)]
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_seconds: Option<u32>,
    /// `expired_only` (default): a client acquires again by itself after its session has expired. `never`: a client
    /// leaves that to its user.
    #[garde(skip)]
    #[schema(value_type = Option<String>, examples("expired_only", "never"))]
    #[serde(default, deserialize_with = "named", skip_serializing_if = "Option::is_none")]
    reacquire: Option<Reacquire>,
    /// Contact for more seats or time.
    #[garde(custom(optional_name_field))]
    #[schema(min_length = 1, max_length = 255)]
    contact: Option<String>,
}

/// `POST /licenses`: creates a license.
#[utoipa::path(
    post, path = "/api/v1/admin/licenses", tag = "admin", operation_id = "create_license", security(("bearer" = [])),
    request_body = Create,
    params(("Idempotency-Key" = Option<String>, Header, description = "Repeats of one request under one key make one license")),
    responses(
        Problems, AdminProblems, BodyProblems,
        (status = 201, body = LicenseAnswer, headers(("ETag" = String, description = "The version, for `If-Match`"))),
        (status = 409, body = Problem, description = "license-key-taken"),
        (status = 422, body = Problem, description = "invalid-request, idempotency-key-reused")
    )
)]
pub(crate) async fn create(
    State(app): State<App>,
    who: Admin,
    meta: Meta,
    key: IdempotencyKey,
    Body(ask): Body<Create>,
) -> Result<(StatusCode, Versioned<LicenseAnswer>), Error> {
    let write = AdminWrite::with_key(&who, &meta, key, "create license", &ask)?;
    let now = app.engine.now().await?;
    let written = app.ledger.create_license(ask.license(&who.tenant), write.at(now)).await;
    let license = written.map_err(|error| Error::of_write(error, Error::LicenseNotFound))?.value;
    // A new license has no seats in use. A repeat gets the first answer.
    Ok((StatusCode::CREATED, LicenseAnswer::new(&license, Some(0)).versioned()))
}

impl Create {
    fn license(self, tenant: &TenantId) -> NewLicense {
        NewLicense {
            tenant: tenant.clone(),
            key: LicenseKey::new(self.license_key.unwrap_or_else(random_key)),
            max_seats: Seats(self.max_seats),
            status: Status::Active,
            expires_at: time_of(self.expires_at),
            count_per: self.count_per.unwrap_or(CountPer::Machine),
            clients: self.clients.unwrap_or_default(),
            ttl_seconds: self.ttl_seconds,
            grace_seconds: self.grace_seconds.unwrap_or_default(),
            reacquire: self.reacquire.unwrap_or_default(),
            contact: self.contact,
        }
    }
}

/// Length of a generated key: 25 of 62 characters make 148 random bits.
const KEY_CHARS: usize = 25;

fn random_key() -> String {
    let text = Alphanumeric.sample_string(&mut rand::rng(), KEY_CHARS);
    let groups: Vec<_> = text.as_bytes().chunks(5).map(String::from_utf8_lossy).collect();
    groups.join("-")
}
