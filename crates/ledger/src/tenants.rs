//! Tenants: noted when they are first seen, and the count of their changes of plans and subscriptions.

use seatkeeper_core::{RegistryTime, TenantId};

use crate::database::Tx;
use crate::{Error, times};

/// Notes the tenant unless it is known. With it come its built-in plans.
pub(crate) async fn note(tx: &mut Tx, tenant: &TenantId, at: RegistryTime) -> Result<(), Error> {
    tx.query(include_str!("../sql/add_tenant.sql"))
        .bind(tenant.as_str())
        .bind(times::stored(at))
        .execute()
        .await?;
    Ok(())
}

/// Notes the tenant, and keeps every other write to what it owns waiting until this transaction is over. So
/// whatever a write reads after this, an earlier answer included, stays so.
pub(crate) async fn hold(tx: &mut Tx, tenant: &TenantId, at: RegistryTime) -> Result<(), Error> {
    note(tx, tenant, at).await?;
    tx.query(include_str!("../sql/hold_tenant.sql")).bind(tenant.as_str()).execute().await?;
    Ok(())
}

/// Takes the number of the next change of the plans and subscriptions of a tenant that is held.
pub(crate) async fn next_version(tx: &mut Tx, tenant: &TenantId) -> Result<u64, Error> {
    let version: i64 =
        tx.query(include_str!("../sql/next_entitlement_version.sql")).bind(tenant.as_str()).scalar().await?;
    Ok(version.unsigned_abs())
}
