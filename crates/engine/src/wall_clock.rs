//! The reader of this machine's wall clock.
//!
//! The wall clock dates tokens, records of operators' changes and the start of the registry's clock. It never
//! decides which sessions live: the registry's time does.

use chrono::{DateTime, SubsecRound, Utc};
use seatkeeper_core::RegistryTime;

/// Returns the current time in whole milliseconds, the ledger's resolution.
#[expect(clippy::disallowed_methods, reason = "the one true caller")]
pub fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}

/// Returns the wall clock as a time of the registry: for the start of the registry's clock, and while no
/// registry tells the time.
pub fn registry_now() -> RegistryTime {
    RegistryTime::from_millis(u64::try_from(now().timestamp_millis()).unwrap_or_default())
}
