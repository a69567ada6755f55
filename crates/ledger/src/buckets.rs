//! Buckets: the epoch and the mode of each, and who rebuilds it. `docs/failover.md` tells what for.

mod epochs;
mod locks;

pub use epochs::{BucketMode, BucketRow, EpochRaise, NotABucketMode, StaleBucket};
pub(crate) use epochs::{hold, hold_current, stored};
