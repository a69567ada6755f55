//! Revocation of a license.

use axum::extract::State;
use axum::http::StatusCode;
use seatkeeper_ledger::licenses::{LicenseChange, LicenseId, Status};

use super::apply::Apply;
use crate::admin::versions::IfMatch;
use crate::admin::write::AdminWrite;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, IdPath, Meta, ParameterProblems, Problems, VersionProblems};
use crate::problem::Problem;

/// `DELETE /licenses/{license_id}`: revokes a license for good. The sessions of the license end at once; its
/// record stays.
#[utoipa::path(
    delete, path = "/api/v1/admin/licenses/{license_id}", tag = "admin", operation_id = "revoke_license",
    security(("bearer" = [])),
    params(
        ("license_id" = Uuid, Path),
        ("If-Match" = Option<String>, Header, description = "The version that the change is based on, such as `\"3\"`: at another version nothing changes")
    ),
    responses(
        Problems, AdminProblems, ParameterProblems, VersionProblems,
        (status = 204, description = "The license is revoked"),
        (status = 404, body = Problem, description = "license-not-found")
    )
)]
pub(crate) async fn revoke(
    State(app): State<App>,
    who: Admin,
    meta: Meta,
    version: IfMatch,
    IdPath(id): IdPath,
) -> Result<StatusCode, Error> {
    let apply = Apply {
        write: AdminWrite::new(&who, &meta).if_match(version),
        id: LicenseId(id),
        change: LicenseChange { status: Some(Status::Revoked), ..LicenseChange::default() },
    };
    apply.run(app).await?;
    Ok(StatusCode::NO_CONTENT)
}
