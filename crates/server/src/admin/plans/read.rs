//! Look-up of a plan.

use axum::extract::State;

use super::answer::PlanAnswer;
use super::path::PlanPath;
use crate::admin::versions::Versioned;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, ParameterProblems, Problems};
use crate::problem::Problem;

/// `GET /plans/{plan}`: returns a plan.
#[utoipa::path(
    get, path = "/api/v1/admin/plans/{plan}", tag = "admin", operation_id = "read_plan",
    security(("bearer" = [])), params(("plan" = String, Path, description = "The plan's name")),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 200, body = PlanAnswer, headers(("ETag" = String, description = "The version, for `If-Match`"))),
        (status = 404, body = Problem, description = "plan-not-found")
    )
)]
pub(crate) async fn read(
    State(app): State<App>,
    who: Admin,
    PlanPath(name): PlanPath,
) -> Result<Versioned<PlanAnswer>, Error> {
    let found = app.ledger.plan(&who.tenant, &name, app.engine.now().await?).await.map_err(Error::Ledger)?;
    Ok(PlanAnswer::from_plan(&found.ok_or(Error::PlanNotFound)?).versioned())
}
