//! Buckets: epoch, mode, unreplayed journal and rebuild lock of each bucket. `docs/failover.md` explains the protocol.

mod epochs;
mod locks;
mod raises;
mod reading;

pub use epochs::{BucketMode, BucketRow, StaleBucket};
pub(crate) use epochs::{hold, hold_current, stored};
pub use raises::{EpochRaise, RaisedBucket, Unreplayed};
pub use reading::Reading;
