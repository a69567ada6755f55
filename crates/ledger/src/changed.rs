//! Pools whose entitlement changed in a time range.

use std::ops::Range;

use seatkeeper_core::{PoolId, RegistryTime};

use crate::row::{Fields, stored_whole};
use crate::{Error, Ledger, times};

impl Ledger {
    /// Returns pools whose entitlement changed in `time`: at most `max` pools, ordered by name, after pool
    /// `after`.
    pub async fn entitlements_changed(
        &self,
        time: Range<RegistryTime>,
        after: Option<&PoolId>,
        max: u32,
    ) -> Result<Vec<PoolId>, Error> {
        let (tenant, kind, name) =
            after.map_or(("", "", ""), |pool| (pool.tenant.as_str(), pool.kind.as_str(), &*pool.name));
        let rows = self
            .readers()
            .query(include_str!("../sql/entitlements_changed.sql"))
            .bind(times::stored(time.start))
            .bind(times::stored(time.end))
            .bind(tenant)
            .bind(kind)
            .bind(name)
            .bind(stored_whole(max.into()))
            .fetch_all()
            .await?;
        rows.iter().map(|row| Fields(row).pool()).collect()
    }
}
