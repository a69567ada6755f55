//! Retirement of a plan.

use axum::extract::State;
use axum::http::StatusCode;
use seatkeeper_ledger::plans::{PlanChange, PlanStatus};

use super::apply::Apply;
use super::path::PlanPath;
use crate::admin::versions::IfMatch;
use crate::admin::write::AdminWrite;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Meta, ParameterProblems, Problems, VersionProblems};
use crate::problem::Problem;

/// `DELETE /plans/{plan}`: retires a plan. A retired plan takes no new subscription; existing subscriptions
/// keep the plan.
#[utoipa::path(
    delete, path = "/api/v1/admin/plans/{plan}", tag = "admin", operation_id = "retire_plan",
    security(("bearer" = [])),
    params(
        ("plan" = String, Path, description = "The plan's name"),
        ("If-Match" = Option<String>, Header, description = "The version that the change is based on, such as `\"3\"`: at another version nothing changes")
    ),
    responses(
        Problems, AdminProblems, ParameterProblems, VersionProblems,
        (status = 204, description = "The plan is retired"),
        (status = 404, body = Problem, description = "plan-not-found")
    )
)]
pub(crate) async fn retire(
    State(app): State<App>,
    who: Admin,
    meta: Meta,
    version: IfMatch,
    PlanPath(name): PlanPath,
) -> Result<StatusCode, Error> {
    let apply = Apply {
        write: AdminWrite::new(&who, &meta).if_match(version),
        name,
        change: PlanChange { status: Some(PlanStatus::Retired), ..PlanChange::default() },
    };
    apply.run(app).await?;
    Ok(StatusCode::NO_CONTENT)
}
