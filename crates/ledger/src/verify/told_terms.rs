//! Compares the limits of admissions in place of unreachable homes with the grants of the regions. The ledger of the
//! admitting region cannot prove the limit: the terms are on record at home.

use futures_util::TryStreamExt as _;
use seatkeeper_core::{PoolId, PoolKind, TenantId, UserId};

use super::grants::Grants;
use super::read::plan_history;
use super::{RegionBreach, Subscriber};
use crate::audit::{AuditRecord, Stream};
use crate::row::Fields;
use crate::{Error, Ledger};

/// The terms of admissions in place of an unreachable home.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldTerms {
    /// The subscriber.
    pub subscriber: Subscriber,
    /// The version of the terms; 0 for unknown terms, whose limit is 1.
    pub version: u64,
    /// The limit on record.
    pub limit: u32,
    /// The number of admissions by the terms.
    pub admissions: u64,
}

impl ToldTerms {
    /// Returns the violation of terms that no region has granted.
    pub fn breach(&self) -> RegionBreach {
        let (user, version, limit) = (self.subscriber.1.clone(), self.version, self.limit);
        RegionBreach::LimitNotTold { user, version, limit }
    }
}

impl Ledger {
    /// Returns the terms of the admissions on record in place of unreachable homes.
    pub async fn told_terms(&self) -> Result<Vec<ToldTerms>, Error> {
        let rows = self.readers().query(include_str!("../../sql/told_terms.sql")).fetch_all().await?;
        let told = |row| {
            let fields = Fields(row);
            let user = UserId::new(fields.value::<&str>("pool_id")?);
            Ok(ToldTerms {
                subscriber: (TenantId::new(fields.value::<&str>("tenant_id")?), user),
                version: fields.whole("limit_version")?,
                limit: fields.small("limit_seats")?,
                admissions: fields.whole("admissions")?,
            })
        };
        rows.iter().map(told).collect()
    }

    /// Returns `true` if a subscription on record has granted the limit and the version of `told`.
    pub async fn grants(&self, told: &ToldTerms) -> Result<bool, Error> {
        let (tenant, user) = &told.subscriber;
        let mut tx = self.readers().begin_snapshot().await?;
        let plans = plan_history(&mut tx, tenant).await?;
        let mut grants = Grants::new(PoolKind::Subscriber, &plans);
        let pool = PoolId::new(PoolKind::Subscriber, tenant.clone(), user.as_str());
        let mut records = tx.query(include_str!("../../sql/pool_records.sql")).bind_pool(&pool).fetch();
        while let Some(row) = records.try_next().await? {
            let record = AuditRecord::read(&row)?;
            // `Ledger::verify` reports a broken stream.
            if record.stream == Stream::Entitlement && grants.record(&record).is_err() {
                return Ok(false);
            }
        }
        Ok(grants.limit_of_version(told.version) == Some(told.limit))
    }
}
