//! Look-up of a license.

use axum::extract::State;
use seatkeeper_ledger::licenses::LicenseId;

use super::answer::LicenseAnswer;
use crate::admin::versions::Versioned;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, IdPath, ParameterProblems, Problems};
use crate::problem::Problem;

/// `GET /licenses/{license_id}`: returns a license.
#[utoipa::path(
    get, path = "/api/v1/admin/licenses/{license_id}", tag = "admin", operation_id = "read_license",
    security(("bearer" = [])), params(("license_id" = Uuid, Path)),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 200, body = LicenseAnswer, headers(("ETag" = String, description = "The version, for `If-Match`"))),
        (status = 404, body = Problem, description = "license-not-found")
    )
)]
pub(crate) async fn read(
    State(app): State<App>,
    who: Admin,
    IdPath(id): IdPath,
) -> Result<Versioned<LicenseAnswer>, Error> {
    let found = app.ledger.license(&who.tenant, LicenseId(id)).await.map_err(Error::Ledger)?;
    let license = found.ok_or(Error::LicenseNotFound)?;
    Ok(LicenseAnswer::read(&app, &license).await.versioned())
}
