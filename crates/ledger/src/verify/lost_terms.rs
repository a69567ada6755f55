//! Admissions by terms that a copy of the ledger has lost. A promoted standby or a restored backup may lack the
//! latest licenses, subscriptions and plans, while events of their pools were still in Redis.

use std::collections::BTreeMap;

use seatkeeper_core::PoolId;

use super::grants::Grants;

/// Admissions to a pool by a version of its terms that a copy of the ledger has lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostTerms {
    /// The pool.
    pub pool: PoolId,
    /// The version of the entitlement.
    pub version: u64,
    /// The number of admissions.
    pub admissions: u64,
}

/// The lost terms of one pool.
#[derive(Debug, Default)]
pub(super) struct Losses {
    /// Lower versions are from before the last copy.
    floor: u64,
    admissions: BTreeMap<u64, u64>,
}

impl Losses {
    /// Returns the losses of a ledger whose versions below `floor` are from before the last copy.
    pub(super) fn new(floor: u64) -> Self {
        Self { floor, admissions: BTreeMap::new() }
    }

    /// Returns whether a copy may have lost the terms of an admission, which are not on record, and counts the admission if
    /// so. A pool keeps lost terms until newer terms come, however long that takes.
    pub(super) fn explain(&mut self, version: u64, grants: &Grants<'_>) -> bool {
        let may_be_lost = grants.change_of(version).is_some_and(|change| change < self.floor);
        if may_be_lost {
            *self.admissions.entry(version).or_default() += 1;
        }
        may_be_lost
    }

    /// Returns the lost terms found.
    pub(super) fn found(self, pool: &PoolId) -> Vec<LostTerms> {
        let of_version = |(version, admissions)| LostTerms { pool: pool.clone(), version, admissions };
        self.admissions.into_iter().map(of_version).collect()
    }
}
