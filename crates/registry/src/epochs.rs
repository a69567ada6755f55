//! The epochs that a node knows.

use std::sync::atomic::{AtomicU64, Ordering};

use seatkeeper_core::{BUCKETS, Bucket};

/// For each bucket the epoch that this node last read in the ledger, or 0 if it serves nothing there. The
/// server writes it. A backend whose memory can be lost asks for it before each call, and demands that what it
/// touches was filled for exactly this epoch; see `docs/failover.md`.
#[derive(Debug)]
pub struct Epochs(Box<[AtomicU64]>);

impl Epochs {
    /// The epoch of a bucket that is not served.
    pub const NONE: u64 = 0;

    /// The epoch of a bucket; [`Epochs::NONE`] if it is not served here.
    pub fn of(&self, bucket: Bucket) -> u64 {
        self.0[usize::from(bucket.number())].load(Ordering::Acquire)
    }

    /// Notes the epoch of a bucket, or [`Epochs::NONE`].
    pub fn set(&self, bucket: Bucket, epoch: u64) {
        self.0[usize::from(bucket.number())].store(epoch, Ordering::Release);
    }
}

impl Default for Epochs {
    /// Nothing is served.
    fn default() -> Self {
        Self((0..BUCKETS).map(|_| AtomicU64::new(Self::NONE)).collect())
    }
}
