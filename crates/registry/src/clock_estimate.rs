//! An estimate of the registry's time between two readings, for registries with a server's clock.

use std::time::Duration;

use parking_lot::Mutex;
use seatkeeper_core::{ESTIMATE_AHEAD_MAX, RegistryTime, Span};
use seatkeeper_host_clock::HostInstant;
use tokio::sync::{Mutex as Turn, MutexGuard};

/// Lifetime of a reading. Short, because the clock may be set meanwhile. Long compared with the cost of a
/// reading, which delays the readings of all other nodes.
const GOOD_FOR: Duration = Duration::from_millis(100);

/// Extended lifetime of a reading while another caller takes the next (single flight).
const USABLE_FOR: Duration = Duration::from_secs(1);

/// Maximum duration of a reading. The moment of a slower reading is too uncertain.
const TELLING_MAX: Duration = Duration::from_millis(ESTIMATE_AHEAD_MAX.as_millis() - GRAIN.as_millis());

/// Readings are in whole milliseconds, so the next reading may be this much ahead of an estimate.
const GRAIN: Span = Span::from_millis(1);

/// The latest reading, basis of the estimate.
#[derive(Debug, Default)]
pub(crate) struct ClockEstimate {
    told: Mutex<Option<TimeSample>>,
    asking: Turn<()>,
}

#[derive(Clone, Copy, Debug)]
struct TimeSample {
    time: RegistryTime,
    /// A moment before the reading.
    asked: HostInstant,
}

/// The estimated time, or the need for a reading.
pub(crate) enum Estimate<'r> {
    Time(RegistryTime),
    /// The caller must take a reading. While the guard is held, other callers use the latest reading, if not
    /// too old.
    Ask(Option<MutexGuard<'r, ()>>),
}

impl ClockEstimate {
    /// Notes a reading requested at `asked`.
    pub(crate) fn note(&self, time: RegistryTime, asked: HostInstant) {
        if asked.elapsed() <= TELLING_MAX {
            *self.told.lock() = Some(TimeSample { time, asked });
        }
    }

    /// Returns the present time, if the latest reading is young enough.
    pub(crate) fn known(&self) -> Estimate<'_> {
        let told = *self.told.lock();
        let now = HostInstant::now();
        if let Some(time) = told.and_then(|told| told.after(now, GOOD_FOR)) {
            return Estimate::Time(time);
        }
        match (self.asking.try_lock(), told.and_then(|told| told.after(now, USABLE_FOR))) {
            (Err(_), Some(time)) => Estimate::Time(time),
            (turn, _) => Estimate::Ask(turn.ok()),
        }
    }
}

impl TimeSample {
    /// Returns the time at `now`, if the reading is at most `age_max` old.
    fn after(self, now: HostInstant, age_max: Duration) -> Option<RegistryTime> {
        let age = now.saturating_duration_since(self.asked);
        (age <= age_max).then(|| self.time + Span::from_millis(age.as_millis() as u64) + GRAIN)
    }
}

#[cfg(test)]
mod tests;
