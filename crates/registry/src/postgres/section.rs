//! Sections of buckets: the database holds a rebuilt section and a lasting section, independent of each
//! other.

use std::sync::Arc;

use seatkeeper_core::{BUCKETS, Bucket};

use super::copies::{Copies, ReceiptEpoch};
use super::fault::Fault;
use crate::Epochs;

/// The epoch of every bucket of the lasting section in the database.
const LASTING_EPOCH: u64 = 1;

/// A section of buckets, and its epochs.
pub(super) enum Section {
    /// Buckets served in the epochs known to the node, and rebuilt for each epoch.
    Rebuilt(Arc<Epochs>),
    /// Buckets served by every node in the same epoch, once filled. An event goes on record in the epoch of `epochs` at the
    /// time of the read.
    Lasting { epochs: Arc<Epochs>, copies: Arc<Copies> },
}

impl Section {
    /// Number of the first bucket of the rebuilt section in PostgreSQL.
    pub(super) const FIRST_REBUILT: i16 = 0;

    /// Returns the number of the section's first bucket in PostgreSQL.
    pub(super) fn first(&self) -> i16 {
        match self {
            Self::Rebuilt(_) => Self::FIRST_REBUILT,
            Self::Lasting { .. } => BUCKETS.cast_signed(),
        }
    }

    /// Returns a bucket's number in PostgreSQL.
    pub(super) fn number_of(&self, bucket: Bucket) -> i16 {
        self.first() + bucket.number().cast_signed()
    }

    /// Returns the name of a bucket's journal for operators.
    pub(super) fn journal_of(&self, bucket: Bucket) -> String {
        format!("registry.journal, bucket {}", self.number_of(bucket))
    }

    /// Returns the bucket of a number in PostgreSQL.
    pub(super) fn bucket_of(&self, number: i16) -> Result<Bucket, Fault> {
        let bucket = number.checked_sub(self.first()).and_then(|number| u16::try_from(number).ok());
        bucket.and_then(Bucket::new).ok_or(Fault::Odd("a bucket that there is not"))
    }

    /// Returns the epoch in which a bucket is served, or [`Epochs::NONE`] if not served.
    pub(super) fn epoch(&self, bucket: Bucket) -> u64 {
        match self {
            Self::Rebuilt(epochs) => epochs.get(bucket),
            Self::Lasting { .. } => LASTING_EPOCH,
        }
    }

    /// Returns the epoch of an event read from a journal of `epoch`.
    pub(super) fn stamp(&self, bucket: Bucket, epoch: u64) -> u64 {
        match self {
            Self::Rebuilt(_) => epoch,
            Self::Lasting { epochs, .. } => epochs.get(bucket),
        }
    }

    /// Returns the epoch of the receipts of a statement that is about to be sent over an acquired connection.
    pub(super) fn receipt_epoch(&self) -> ReceiptEpoch {
        match self {
            Self::Rebuilt(_) => ReceiptEpoch::Stored,
            Self::Lasting { copies, .. } => ReceiptEpoch::Generation(copies.generation()),
        }
    }

    /// Returns the database's epoch of a receipt with `epoch`, `None` for a receipt of another copy of the database.
    /// Must be called with an acquired connection.
    pub(super) fn stored_epoch(&self, epoch: u64) -> Option<u64> {
        match self {
            Self::Rebuilt(_) => Some(epoch),
            Self::Lasting { copies, .. } => (copies.generation() == epoch).then_some(LASTING_EPOCH),
        }
    }
}
