//! The registry's time between two readings of it, for registries whose clock is a server's.

use std::time::{Duration, Instant};

use parking_lot::Mutex;
use seatkeeper_core::{RegistryTime, Span};
use tokio::sync::{Mutex as Turn, MutexGuard};

/// For how long a telling is good. The clock may be set meanwhile, so it is short; but it is long beside what a telling
/// costs, which holds up all other nodes' tellings.
const GOOD_FOR: Duration = Duration::from_millis(100);

/// For how long it will do while somebody asks for the next.
const USABLE_FOR: Duration = Duration::from_secs(1);

/// What a telling took at most. Of one that took longer it is not known well enough when it was true.
const TELLING_MAX: Duration = Duration::from_millis(100);

/// Tellings are in whole milliseconds: the next one may be ahead of what this one comes to.
const GRAIN: Span = Span::from_millis(1);

/// The latest telling, from which the time is reckoned.
#[derive(Debug, Default)]
pub(crate) struct Reckoning {
    told: Mutex<Option<Told>>,
    asking: Turn<()>,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    time: RegistryTime,
    /// It was true at some moment after this.
    asked: Instant,
}

/// What is to be done to know the time.
pub(crate) enum Known<'r> {
    Time(RegistryTime),
    /// It must be asked for. Others who want to know do without while this is held, if they can.
    Ask(Option<MutexGuard<'r, ()>>),
}

impl Reckoning {
    /// Notes that this time was told to who had asked then.
    pub(crate) fn note(&self, time: RegistryTime, asked: Instant) {
        if asked.elapsed() <= TELLING_MAX {
            *self.told.lock() = Some(Told { time, asked });
        }
    }

    /// The time now, if it follows from what was told.
    pub(crate) fn known(&self) -> Known<'_> {
        let told = *self.told.lock();
        let now = Instant::now();
        if let Some(time) = told.and_then(|told| told.after(now, GOOD_FOR)) {
            return Known::Time(time);
        }
        match (self.asking.try_lock(), told.and_then(|told| told.after(now, USABLE_FOR))) {
            (Err(_), Some(time)) => Known::Time(time),
            (turn, _) => Known::Ask(turn.ok()),
        }
    }
}

impl Told {
    /// The time at this moment, if the telling is that young.
    fn after(self, now: Instant, age_max: Duration) -> Option<RegistryTime> {
        let age = now.saturating_duration_since(self.asked);
        (age <= age_max).then(|| self.time + Span::from_millis(age.as_millis() as u64) + GRAIN)
    }
}

#[cfg(test)]
mod tests;
