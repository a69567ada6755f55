//! A survey before a rebuild: buckets in the ledger, and conditions of the buckets in the registries.

use seatkeeper_core::Bucket;
use seatkeeper_ledger::buckets::BucketRow;
use seatkeeper_registry::Condition;

use super::rebuild_queue::is_superseded;
use super::rebuild_targets::Conditions;

/// The buckets in the ledger, and the conditions of the buckets in the registries right afterwards.
pub(super) struct Survey {
    /// The rows in the order of buckets.
    pub(super) rows: Vec<BucketRow>,
    pub(super) conditions: Conditions,
}

impl Survey {
    /// Returns a bucket's row and condition in the configured registry.
    pub(super) fn bucket(&self, bucket: Bucket) -> Option<(&BucketRow, &Condition)> {
        let number = usize::from(bucket.number());
        self.rows.get(number).zip(self.conditions.main.get(number))
    }

    /// Returns whether the configured registry of a bucket leads to an old primary.
    pub(super) fn is_superseded(&self, bucket: Bucket) -> bool {
        self.bucket(bucket).is_some_and(|(row, condition)| is_superseded(row, condition))
    }

    /// Returns whether a process that uses the ledger alone has served some bucket last.
    pub(super) fn sole_user_served(&self) -> bool {
        self.rows.iter().any(BucketRow::is_of_sole_user)
    }
}
