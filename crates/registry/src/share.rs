//! Which reader of a journal reads what, if several do at the same time.

use seatkeeper_core::Bucket;
use tokio::sync::Notify;

/// The buckets that one reader of a journal reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// All: it is the only one.
    All,
    /// Those of even numbers.
    Even,
    /// Those of odd numbers.
    Odd,
}

impl Share {
    /// The shares of two readers.
    pub const HALVES: [Self; 2] = [Self::Even, Self::Odd];

    /// Whether a bucket is in it.
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

/// Wakes those who look after a share each. What comes while one does not wait wakes it when it does.
#[derive(Debug, Default)]
pub struct Stirred {
    even: Notify,
    odd: Notify,
}

impl Stirred {
    /// Something has come in this bucket.
    pub fn notify(&self, bucket: Bucket) {
        if is_even(bucket) { self.even.notify_one() } else { self.odd.notify_one() }
    }

    /// Returns once something has come in one of the share's buckets since the last call.
    pub async fn notified(&self, share: Share) {
        match share {
            Share::All => tokio::select! {
                () = self.even.notified() => {}
                () = self.odd.notified() => {}
            },
            Share::Even => self.even.notified().await,
            Share::Odd => self.odd.notified().await,
        }
    }
}
