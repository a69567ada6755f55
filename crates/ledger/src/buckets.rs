//! Buckets: epoch, mode, unreplayed journal and rebuild lock of each bucket. `docs/failover.md` explains the protocol.

mod departures;
mod epochs;
mod locks;
mod raises;
mod reading;

pub(crate) use epochs::{ALONE, hold, hold_current, stored};
pub use epochs::{BucketMode, BucketRow, StaleBucket};
pub use raises::{EpochRaise, RaisedBucket, Unreplayed};
pub use reading::Reading;
