//! The epochs known to a node.

use std::sync::atomic::{AtomicU64, Ordering};

use seatkeeper_core::{BUCKETS, Bucket};

/// The epoch of each bucket, as this node last read it in the ledger, or 0 if the node does not serve the
/// bucket. The engine writes the epochs. Before each call, a backend that can lose its memory reads the epoch
/// and requires a bucket rebuilt for exactly this epoch; see `docs/failover.md`.
#[derive(Debug)]
pub struct Epochs(Box<[AtomicU64]>);

impl Epochs {
    /// The epoch of a bucket that is not served.
    pub const NONE: u64 = 0;

    /// Returns the epoch of a bucket, or [`Epochs::NONE`] if not served by this node.
    pub fn get(&self, bucket: Bucket) -> u64 {
        self.0[usize::from(bucket.number())].load(Ordering::Acquire)
    }

    /// Sets the epoch of a bucket, or [`Epochs::NONE`].
    pub fn set(&self, bucket: Bucket, epoch: u64) {
        self.0[usize::from(bucket.number())].store(epoch, Ordering::Release);
    }
}

impl Default for Epochs {
    /// Returns epochs of which no bucket is served.
    fn default() -> Self {
        Self((0..BUCKETS).map(|_| AtomicU64::new(Self::NONE)).collect())
    }
}
