//! Detects flapping: buckets that leave their registry repeatedly.
//!
//! Each fallback and each return raises the bucket's epoch and fills a registry. A registry that accepts the
//! writes of a probe but fails under the load of a return would be filled again and again. A bucket that
//! falls back right after its return therefore stays away for longer.

use std::time::{Duration, Instant};

use seatkeeper_core::{BUCKETS, Bucket, BucketSet};
use seatkeeper_ledger::buckets::{BucketMode, BucketRow};

/// A fallback within this time of the end of the last return is a repeated fallback. The circuit breaker takes up to
/// 6 s of it to open, and the votes of the nodes 1 s to 2 s. The rest is the time in which the registry was well.
const REPEATED_WITHIN: Duration = Duration::from_secs(15);

/// The latest fallback of each bucket, as far as this node has seen.
pub(super) struct Fallbacks(Box<[Fallback]>);

#[derive(Clone, Copy, Debug, Default)]
struct Fallback {
    /// The end of the last return: the registry serves the bucket again.
    returned: Option<Instant>,
    is_under_way: bool,
    is_returning: bool,
    is_repeated: bool,
}

impl Default for Fallbacks {
    fn default() -> Self {
        Self((0..BUCKETS).map(|_| Fallback::default()).collect())
    }
}

impl Fallbacks {
    /// Notes the modes of the buckets at `now`, and the buckets in service. Returns the buckets with a repeated latest
    /// fallback.
    pub(super) fn note(&mut self, rows: &[BucketRow], in_service: BucketSet, now: Instant) -> BucketSet {
        for row in rows {
            if let Some(fallback) = self.0.get_mut(usize::from(row.bucket.number())) {
                fallback.note(row.mode != BucketMode::Registry, in_service.contains(row.bucket), now);
            }
        }
        Bucket::all()
            .zip(&self.0)
            .filter_map(|(bucket, latest)| latest.is_repeated.then_some(bucket))
            .collect()
    }
}

impl Fallback {
    fn note(&mut self, is_under_way: bool, is_in_service: bool, now: Instant) {
        if is_under_way && !self.is_under_way {
            let is_recent = |returned: Instant| now.duration_since(returned) < REPEATED_WITHIN;
            self.is_repeated = self.returned.is_some_and(is_recent);
        }
        // A rebuild over a network that comes and goes may take long.
        self.is_returning = !is_under_way && (self.is_under_way || self.is_returning);
        if self.is_returning {
            self.returned = Some(now);
            self.is_returning = !is_in_service;
        }
        self.is_under_way = is_under_way;
    }
}

#[cfg(test)]
mod tests;
