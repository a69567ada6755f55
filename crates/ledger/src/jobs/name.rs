//! The names of all jobs.

use seatkeeper_core::named_enum;

named_enum! {
    /// A job.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum JobName else "not a job" {
        /// Meters the time for which capacities are held.
        UsageEmission = "usage_emission",
        /// Delivers metered usage to the sink.
        UsageDelivery = "usage_delivery",
        /// Ends expired sessions.
        SessionExpiry = "session_expiry",
        /// Deletes history older than the operator keeps.
        Retention = "retention",
        /// Deletes old job runs and idempotency keys.
        Housekeeping = "housekeeping",
        /// Carries on moves of homes that were cut off.
        Moves = "moves",
    }
}
