//! The database holds two sections of buckets, which know nothing of one another.

use std::sync::Arc;

use seatkeeper_core::{BUCKETS, Bucket};

use super::fault::Fault;
use crate::Epochs;

/// The epoch of every bucket of the section that lasts.
const LASTING_EPOCH: u64 = 1;

/// One of them, and what its epochs are.
pub(super) enum Section {
    /// Served in the epochs that are known, and filled anew for each.
    Rebuilt(Arc<Epochs>),
    /// Always served, and never filled anew. Its events go on record in whatever epoch their bucket is known to be in
    /// as they are read.
    Lasting(Arc<Epochs>),
}

impl Section {
    /// The number of its first bucket, as PostgreSQL keeps it.
    pub(super) fn first(&self) -> i16 {
        match self {
            Self::Rebuilt(_) => 0,
            Self::Lasting(_) => BUCKETS.cast_signed(),
        }
    }

    /// The number of a bucket, as PostgreSQL keeps it.
    pub(super) fn number_of(&self, bucket: Bucket) -> i16 {
        self.first() + bucket.number().cast_signed()
    }

    /// The bucket of this number.
    pub(super) fn bucket_of(&self, number: i16) -> Result<Bucket, Fault> {
        let bucket = number.checked_sub(self.first()).and_then(|number| u16::try_from(number).ok());
        bucket.and_then(Bucket::new).ok_or(Fault::Odd("a bucket that there is not"))
    }

    /// The epoch in which a bucket is served; [`Epochs::NONE`] if it is not.
    pub(super) fn epoch(&self, bucket: Bucket) -> u64 {
        match self {
            Self::Rebuilt(epochs) => epochs.of(bucket),
            Self::Lasting(_) => LASTING_EPOCH,
        }
    }

    /// The epoch of an event that was read in a journal of `epoch`.
    pub(super) fn stamp(&self, bucket: Bucket, epoch: u64) -> u64 {
        match self {
            Self::Rebuilt(_) => epoch,
            Self::Lasting(epochs) => epochs.of(bucket),
        }
    }
}
