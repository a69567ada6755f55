//! The effort of a measurement: its length and its size.

use std::time::Duration;

/// The length and the size of the measurements.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Rounds of each comparison.
    pub(crate) rounds: usize,
    /// Measuring time of each side in a round. For devices, the journal absorbs a burst of this length.
    pub(crate) measured: Duration,
    /// Duration of evictions without a pause.
    pub(crate) sustained: Duration,
    /// Acquires of each side in a round, in measurements that count acquires.
    pub(crate) acquires: u64,
    /// Seats of the large license.
    pub(crate) seats_many: u32,
    /// Live sessions in the memory measurement.
    pub(crate) sessions: u32,
}

/// The effort of a report.
pub(crate) const FULL: Effort = Effort {
    rounds: 11,
    measured: Duration::from_secs(2),
    sustained: Duration::from_secs(30),
    acquires: 4_000,
    seats_many: 100_000,
    sessions: 1_000_000,
};

/// The effort of a first impression.
pub(crate) const QUICK: Effort = Effort {
    rounds: 3,
    measured: Duration::from_secs(1),
    sustained: Duration::from_secs(10),
    acquires: 1_000,
    seats_many: 100_000,
    sessions: 1_000_000,
};
