//! The anchor regions of tenants and the home regions of subscribers. Neither changes once fixed.

use seatkeeper_core::{Region, TenantId, UserId};

use crate::database::Tx;
use crate::row::corrupt;
use crate::{Error, Ledger, tenants, times};

impl Ledger {
    /// Returns the anchor region of a tenant, and fixes `anchor` if the tenant has no anchor on record.
    pub async fn fix_anchor(&self, tenant: &TenantId, anchor: Region) -> Result<Region, Error> {
        let mut tx = self.write().await?;
        let now = times::from_stored(tx.now().await?);
        tenants::note(&mut tx, tenant, now).await?;
        let fixed = tx.query(include_str!("../sql/fix_anchor.sql"));
        let fixed = fixed.bind(tenant.as_str()).bind(stored(anchor)).scalar().await?;
        tx.commit().await?;
        region_from(fixed)
    }

    /// Returns the home region of a subscriber, as far as this ledger knows.
    pub async fn home(&self, tenant: &TenantId, user: &UserId) -> Result<Option<Region>, Error> {
        let home = self.readers().query(include_str!("../sql/home.sql"));
        let number = home.bind(tenant.as_str()).bind(user.as_str()).scalar_optional().await?;
        number.map(region_from).transpose()
    }

    /// Returns the home region of a subscriber, and assigns `first` if the subscriber has no home. A subscriber with a
    /// history or a subscription in this ledger gets `own`, the region of this ledger. Concurrent calls return the same
    /// region.
    pub async fn assign_home(
        &self,
        tenant: &TenantId,
        user: &UserId,
        first: Region,
        own: Region,
    ) -> Result<Region, Error> {
        let mut tx = self.write().await?;
        let now = tx.now().await?;
        let assignment = tx.query(include_str!("../sql/assign_home.sql"));
        let assignment = assignment.bind(tenant.as_str()).bind(user.as_str());
        assignment.bind(stored(first)).bind(stored(own)).bind(now).execute().await?;
        let home = read(&mut tx, tenant, user).await?;
        tx.commit().await?;
        Ok(home)
    }
}

async fn read(tx: &mut Tx, tenant: &TenantId, user: &UserId) -> Result<Region, Error> {
    let home = tx.query(include_str!("../sql/home.sql"));
    region_from(home.bind(tenant.as_str()).bind(user.as_str()).scalar().await?)
}

fn region_from(number: i64) -> Result<Region, Error> {
    u8::try_from(number).map(Region::new).map_err(|source| corrupt("region", source))
}

fn stored(region: Region) -> i64 {
    i64::from(region.number())
}
