//! Buckets: epoch, mode and rebuild lock of each bucket. `docs/failover.md` explains the protocol.

mod epochs;
mod locks;
mod reading;

pub use epochs::{BucketMode, BucketRow, EpochRaise, StaleBucket};
pub(crate) use epochs::{hold, hold_current, stored};
pub use reading::Reading;
