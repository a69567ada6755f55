//! The one place that reads this machine's wall clock.
//!
//! It dates tokens, records of operators' changes and the start of the registry's clock. It never
//! decides who lives: that is the registry's time.

use chrono::{DateTime, SubsecRound, Utc};

/// The time now, in whole milliseconds, as the ledger stores it.
#[expect(clippy::disallowed_methods, reason = "the one true caller")]
pub fn now() -> DateTime<Utc> {
    Utc::now().trunc_subsecs(3)
}
