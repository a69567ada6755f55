//! Tenants, and the version counter of each tenant's plans and subscriptions.

use seatkeeper_core::{RegistryTime, TenantId};

use crate::database::Tx;
use crate::row::stored_whole;
use crate::{Error, copies, times};

/// Adds the tenant unless the tenant is known. A database trigger adds the built-in plans.
pub(crate) async fn note(tx: &mut Tx, tenant: &TenantId, at: RegistryTime) -> Result<(), Error> {
    tx.query(include_str!("../sql/add_tenant.sql"))
        .bind(tenant.as_str())
        .bind(times::stored(at))
        .execute()
        .await?;
    Ok(())
}

/// Adds the tenant, and locks the tenant's row until the transaction ends. Writes to one tenant run one after
/// another, so every value read after `hold` stays current, including kept idempotent answers.
pub(crate) async fn hold(tx: &mut Tx, tenant: &TenantId, at: RegistryTime) -> Result<(), Error> {
    note(tx, tenant, at).await?;
    tx.query(include_str!("../sql/hold_tenant.sql")).bind(tenant.as_str()).execute().await?;
    Ok(())
}

/// Takes the next version for a change of the tenant's plans or subscriptions at `at`. The caller must [`hold`] the
/// tenant.
pub(crate) async fn next_version(tx: &mut Tx, tenant: &TenantId, at: RegistryTime) -> Result<u64, Error> {
    let least = copies::next_version(tx, 0, at).await?;
    let version: i64 = tx
        .query(include_str!("../sql/next_entitlement_version.sql"))
        .bind(tenant.as_str())
        .bind(stored_whole(least))
        .scalar()
        .await?;
    Ok(version.unsigned_abs())
}
