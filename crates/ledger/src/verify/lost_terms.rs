//! Admissions by terms that a copy of the ledger has lost. A promoted standby or a restored backup may lack the
//! latest licenses, subscriptions and plans, while events of their pools were still in Redis.

use std::collections::BTreeMap;

use seatkeeper_core::{PoolId, RegistryTime, Span};

/// Lost terms decide admissions for at most this time after the copy was noted: nodes and Redis remember terms for
/// a minute.
const REMEMBERED_FOR: Span = Span::from_secs(120);

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
    /// The time of the last note that this ledger is a copy.
    noted: Option<RegistryTime>,
    admissions: BTreeMap<u64, u64>,
}

impl Losses {
    /// Returns the losses of a ledger that was found to be a copy at these times.
    pub(super) fn new(copies: &[RegistryTime]) -> Self {
        Self { noted: copies.iter().max().copied(), admissions: BTreeMap::new() }
    }

    /// Returns whether a copy may have lost the terms of an admission at `at`, and counts the admission if so.
    pub(super) fn explain(&mut self, version: u64, at: RegistryTime) -> bool {
        let may_be_lost = self.noted.is_some_and(|noted| at <= noted + REMEMBERED_FOR);
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
