//! Revocation of every session of a pool.

use axum::extract::State;
use seatkeeper_core::{EndReason, PoolId, TenantId};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::pool_name::PoolKindName;
use crate::app::App;
use crate::devices;
use crate::error::Error;
use crate::http::{Admin, AdminProblems, Meta, ParameterProblems, Problems, Query};
use crate::settings::Durability;

#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PoolQuery {
    /// `license`, `subscriber`, `capacity` or `group`.
    #[param(value_type = String)]
    pool_kind: PoolKindName,
    /// The license's id, the subscriber, or the user and the capacity with `/` between.
    pool: String,
}

impl PoolQuery {
    /// Returns the pool, in an admin's tenant. Returns an error of the field `pool` for a text that names no pool of the kind.
    pub(crate) fn pool_of(&self, tenant: &TenantId) -> Result<PoolId, Error> {
        let name = self.pool_kind.pool_name(&self.pool)?;
        Ok(PoolId::new(self.pool_kind.0, tenant.clone(), name))
    }
}

/// The number of sessions ended.
#[derive(Serialize, ToSchema)]
pub(crate) struct EndedAnswer {
    ended: usize,
}

/// `DELETE /sessions`: ends every session of a pool. A group without members gives its screen back.
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
    let pool = query.pool_of(&who.tenant)?;
    let origin = meta.origin(who.as_admin());
    let ended = app.engine.end_all(&pool, EndReason::Revoked, &origin, Durability::Ledger).await?;
    devices::give_back_screen_of(&app, &pool, &origin).await?;
    Ok(axum::Json(EndedAnswer { ended }))
}
