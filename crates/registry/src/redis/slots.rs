//! The hash slot of each bucket in a cluster.

use seatkeeper_core::Bucket;
use seatkeeper_redis::Slot;

use super::keys::bucket_tag;

/// The slots of all buckets, computed once.
#[derive(Debug)]
pub(super) struct BucketSlots(Box<[Slot]>);

impl BucketSlots {
    pub(super) fn new() -> Self {
        Self(Bucket::all().map(|bucket| Slot::from_key(&bucket_tag(bucket))).collect())
    }

    pub(super) fn get(&self, bucket: Bucket) -> Slot {
        self.0[usize::from(bucket.number())]
    }
}
