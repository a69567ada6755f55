use axum::extract::State;
use seatkeeper_core::{EndReason, PoolId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::search::PoolKindName;
use crate::app::App;
use crate::error::Error;
use crate::http::{Admin, Meta, Query};
use crate::problem::Problem;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PoolQuery {
    /// `license`.
    #[param(value_type = String)]
    pool_kind: PoolKindName,
    /// The license's id.
    pool: Uuid,
}

/// How many sessions ended.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndedAnswer {
    ended: usize,
}

/// `DELETE /sessions`: end all sessions of a pool.
#[utoipa::path(
    delete, path = "/sessions", tag = "admin", operation_id = "revoke_sessions", security(("bearer" = [])),
    params(PoolQuery),
    responses(
        (status = 200, body = EndedAnswer),
        (status = "4XX", body = Problem), (status = "5XX", body = Problem)
    )
)]
pub(crate) async fn revoke_all(
    State(app): State<App>,
    who: Admin,
    meta: Meta,
    Query(query): Query<PoolQuery>,
) -> Result<axum::Json<EndedAnswer>, Error> {
    let pool = PoolId::new(query.pool_kind.0, who.tenant.clone(), query.pool.to_string());
    let origin = meta.origin(who.as_admin());
    let ended = app.engine.end_all(&pool, EndReason::Revoked, &origin).await?;
    Ok(axum::Json(EndedAnswer { ended }))
}
