//! The one place that reads this machine's wall clock.
//!
//! It dates tokens, records of operators' changes and the start of the registry's clock. It never
//! decides who lives: that is the registry's time.

use chrono::{DateTime, SubsecRound, Utc};
use seatkeeper_core::RegistryTime;

/// The time now, in whole milliseconds, as the ledger stores it.
#[expect(clippy::disallowed_methods, reason = "the one true caller")]
pub fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}

/// The time now as a reading of the registry's clock: for the start of that clock, and while no registry tells the time.
pub(crate) fn registry_now() -> RegistryTime {
    RegistryTime::from_millis(u64::try_from(now().timestamp_millis()).unwrap_or_default())
}
