//! Get a license token: a client shows the key of a license, and needs no other token to use the license.

use axum::extract::State;
use garde::Validate;
use seatkeeper_core::{RegistryTime, TenantId};
use seatkeeper_engine::wall_clock;
use seatkeeper_ledger::licenses::{Clients, License, Status};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::auth::{LICENSE_TOKEN_LIFETIME, tenant_from_text};
use crate::error::Error;
use crate::http::{BodyProblems, Meta, Unread, name_field, optional_name_field};
use crate::problem::Problem;
use crate::times::registry_time_of;

/// The tenant of a request that names none, as of a token that `seatkeeper token` makes.
const TENANT_DEFAULT: &str = "default";

/// A request for a license token.
#[derive(Deserialize, Validate, ToSchema)]
pub(super) struct LicenseTokenRequest {
    /// The tenant that owns the license; absent: `default`.
    #[garde(custom(optional_name_field))]
    #[schema(min_length = 1, max_length = 255)]
    tenant: Option<String>,
    /// The license's key.
    #[garde(custom(name_field))]
    #[schema(min_length = 1, max_length = 255)]
    license_key: String,
    /// The client's machine, always by the same name. The token is good for seats of this machine alone.
    #[garde(custom(name_field))]
    #[schema(min_length = 1, max_length = 255)]
    machine_id: String,
}

/// A license token.
#[derive(Serialize, ToSchema)]
pub(super) struct LicenseToken {
    /// To be sent as `Authorization: Bearer …`.
    token: String,
    /// `Bearer`.
    token_type: &'static str,
    /// The life of the token, in seconds.
    expires_in_seconds: u64,
}

/// `POST /token`: get a token that is good for seats of one license on one machine.
#[utoipa::path(
    post, path = "/api/v1/licenses/token", tag = "licenses", operation_id = "license_token", request_body = LicenseTokenRequest,
    responses(
        BodyProblems,
        (status = 200, body = LicenseToken, description = "The key is good for a token"),
        (status = 404, body = Problem, description = "license-not-found, not-found"),
        (status = 429, body = Problem, description = "too-many-requests"),
        (status = 500, body = Problem, description = "internal"),
        (status = 503, body = Problem, description = "unavailable")
    )
)]
pub(super) async fn token(
    State(app): State<App>,
    meta: Meta,
    body: Unread,
) -> Result<axum::Json<LicenseToken>, Error> {
    let Some(license_tokens) = app.verifier.license_tokens() else { return Err(Error::NoSuchRoute) };
    // Before the body is read: a client that guesses keys costs no more than this.
    app.limits.license_token_by_address(meta.ip, &meta.standing).await?;
    let ask: LicenseTokenRequest = body.read(&app).await?;
    let tenant = ask.tenant();
    app.limits.license_token_by_key(&tenant, &ask.license_key, &meta.standing).await?;
    let now = registry_time_of(wall_clock::now());
    let fits = |license: &License| gives_tokens(license, now);
    let license = app.entitlements.licenses.license_that(&tenant, &ask.license_key, fits).await?;
    let token = license_tokens.sign(&license, &ask.machine_id);
    Ok(axum::Json(LicenseToken {
        token: token.map_err(|error| Error::Unwritable(Box::new(error)))?,
        token_type: "Bearer",
        expires_in_seconds: LICENSE_TOKEN_LIFETIME.as_secs(),
    }))
}

impl LicenseTokenRequest {
    fn tenant(&self) -> TenantId {
        tenant_from_text(self.tenant.as_deref().unwrap_or(TENANT_DEFAULT))
    }
}

/// Returns `true` for a license that may be used now, and by clients that show its key alone. An expiry is checked by the
/// wall clock, as dates of tokens are; every admission checks the expiry again, by the registry's clock.
fn gives_tokens(license: &License, now: RegistryTime) -> bool {
    license.status == Status::Active
        && license.clients == Clients::Key
        && license.expires_at.is_none_or(|ends| now < ends)
}
