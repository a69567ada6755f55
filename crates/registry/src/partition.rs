//! Shares of the buckets for parallel readers of the journals.

use seatkeeper_core::Bucket;
use tokio::sync::Notify;

/// The buckets of one reader of the journals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partition {
    /// All buckets, for a single reader.
    All,
    /// Buckets of even number.
    Even,
    /// Buckets of odd number.
    Odd,
}

impl Partition {
    /// The shares of two readers.
    pub const HALVES: [Self; 2] = [Self::Even, Self::Odd];

    /// Returns whether a bucket is in the share.
    pub fn has(self, bucket: Bucket) -> bool {
        match self {
            Self::All => true,
            Self::Even => is_even(bucket),
            Self::Odd => !is_even(bucket),
        }
    }
}

fn is_even(bucket: Bucket) -> bool {
    bucket.number().is_multiple_of(2)
}

/// Wakes the readers of shares. A notification without a waiting reader wakes the reader's next wait.
#[derive(Debug, Default)]
pub struct Wakeup {
    even: Notify,
    odd: Notify,
}

impl Wakeup {
    /// Notifies the reader of a bucket of a new event.
    pub fn notify(&self, bucket: Bucket) {
        if is_even(bucket) { self.even.notify_one() } else { self.odd.notify_one() }
    }

    /// Waits for a notification in the share since the last call.
    pub async fn notified(&self, partition: Partition) {
        match partition {
            Partition::All => tokio::select! {
                () = self.even.notified() => {}
                () = self.odd.notified() => {}
            },
            Partition::Even => self.even.notified().await,
            Partition::Odd => self.odd.notified().await,
        }
    }
}
