//! Revocation of every session of a pool.

use axum::extract::State;
use seatkeeper_core::{EndReason, PoolId, PoolKind};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::search::PoolKindName;
use crate::app::App;
use crate::capacities;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Meta, ParameterProblems, Problems, Query};
use crate::settings::Durability;

#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct PoolQuery {
    /// `license`, `subscriber`, `capacity` or `group`.
    #[param(value_type = String)]
    pool_kind: PoolKindName,
    /// The license's id, the subscriber, or the user and the capacity with `/` between.
    pool: String,
}

/// The number of sessions ended.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndedAnswer {
    ended: usize,
}

/// `DELETE /sessions`: ends every session of a pool.
#[utoipa::path(
    delete, path = "/api/v1/admin/sessions", tag = "admin", operation_id = "revoke_sessions", security(("bearer" = [])),
    params(PoolQuery),
    responses(
        Problems, AdminProblems, ParameterProblems,
        (status = 200, body = EndedAnswer)
    )
)]
pub(crate) async fn revoke_all(
    State(app): State<App>,
    who: Admin,
    meta: Meta,
    Query(query): Query<PoolQuery>,
) -> Result<axum::Json<EndedAnswer>, Error> {
    let pool = PoolId::new(query.pool_kind.0, who.tenant.clone(), query.name()?);
    let origin = meta.origin(who.as_admin());
    let ended = app.engine.end_all(&pool, EndReason::Revoked, &origin, Durability::Ledger).await?;
    Ok(axum::Json(EndedAnswer { ended }))
}

impl PoolQuery {
    /// Returns the pool's name in normal form, because UUIDs have several spellings.
    fn name(&self) -> Result<String, Error> {
        let wrong = |message| Error::field("pool", message);
        match self.pool_kind.0 {
            PoolKind::License => {
                let id = Uuid::try_parse(&self.pool).map_err(|_| wrong("must be a license's id"))?;
                Ok(id.to_string())
            }
            PoolKind::Subscriber => Ok(self.pool.clone()),
            PoolKind::Group => {
                let id = Uuid::try_parse(&self.pool).map_err(|_| wrong("must be a group's id"))?;
                Ok(id.to_string())
            }
            PoolKind::Capacity => capacities::pool_name(&self.pool)
                .ok_or_else(|| wrong("must be a user's and a capacity's UUID with `/` between")),
        }
    }
}
