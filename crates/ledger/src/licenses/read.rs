//! Lookup and listing of licenses.

use sea_query::{Expr, ExprTrait as _, Order, Query};
use seatkeeper_core::TenantId;

use super::state::State;
use super::{License, LicenseId, LicenseKey, Status};
use crate::database::Tx;
use crate::idempotency::{self, Entity};
use crate::page::{Page, rows_for};
use crate::row::corrupt;
use crate::{Effect, Error, Ledger, Write, Written};

const COLUMNS: &str = "id, tenant_id, license_key, max_seats, status, expires_at, count_per, clients, ttl_seconds, \
    grace_seconds, reacquire, contact, version, created_at, updated_at";

impl Ledger {
    /// Returns the tenant's license of an id.
    pub async fn license(&self, tenant: &TenantId, id: LicenseId) -> Result<Option<License>, Error> {
        let row = self
            .readers()
            .query(include_str!("../../sql/license.sql"))
            .bind(tenant.as_str())
            .bind(id.0)
            .fetch_optional()
            .await?;
        row.as_ref().map(License::read).transpose()
    }

    /// Returns the tenant's license of a key.
    pub async fn license_by_key(
        &self,
        tenant: &TenantId,
        key: &LicenseKey,
    ) -> Result<Option<License>, Error> {
        let row = self
            .readers()
            .query(include_str!("../../sql/license_by_key.sql"))
            .bind(tenant.as_str())
            .bind(key.reveal())
            .fetch_optional()
            .await?;
        row.as_ref().map(License::read).transpose()
    }

    /// Returns a page of the tenant's licenses in the order of creation, after license `cursor`.
    pub async fn list_licenses(
        &self,
        tenant: &TenantId,
        status: Option<Status>,
        cursor: Option<LicenseId>,
        limit: u32,
    ) -> Result<Page<License, LicenseId>, Error> {
        let statement = Query::select()
            .expr(Expr::cust(COLUMNS))
            .from("licenses")
            .and_where(Expr::col("tenant_id").eq(tenant.as_str()))
            .and_where_option(status.map(|status| Expr::col("status").eq(status.as_str())))
            .and_where_option(cursor.map(|after| Expr::col("id").gt(after.0)))
            .order_by("id", Order::Asc)
            .limit(rows_for(limit))
            .take();
        let rows = self.readers().select(&statement).fetch_all().await?;
        let licenses = rows.iter().map(License::read).collect::<Result<_, _>>()?;
        Ok(Page::new(licenses, limit, |license: &License| license.id))
    }
}

/// Returns the license as seen by the transaction.
pub(super) async fn in_transaction(tx: &mut Tx, tenant: &TenantId, id: LicenseId) -> Result<License, Error> {
    let row = tx
        .query(include_str!("../../sql/license.sql"))
        .bind(tenant.as_str())
        .bind(id.0)
        .fetch_optional()
        .await?;
    License::read(&row.ok_or(Error::NotFound)?)
}

/// Returns the license from the kept answer of an earlier request, if the write is a retry.
pub(super) async fn answered(
    tx: &mut Tx,
    tenant: &TenantId,
    write: &Write<'_>,
) -> Result<Option<Written<License>>, Error> {
    let Some(answered) = idempotency::answered::<State>(tx, tenant, Entity::License, write).await? else {
        return Ok(None);
    };
    let id = answered.id.parse().map_err(|source| corrupt("entity_id", source))?;
    let license = in_transaction(tx, tenant, id).await?;
    Ok(Some(Written { value: answered.state.restore(license), effect: Effect::Replayed }))
}
