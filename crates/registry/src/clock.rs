//! Clocks of the memory backend.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use seatkeeper_core::{RegistryTime, Span};

/// A source of registry time, not necessarily monotonic: the registry keeps a high-water mark.
pub trait TimeSource: Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> RegistryTime;
}

/// A clock that cannot be set: it starts at a given time and runs with the process's monotonic clock.
#[derive(Debug)]
pub struct MonotonicClock {
    base: RegistryTime,
    started: Instant,
}

impl MonotonicClock {
    /// Creates a clock that reads `base` at first. `base` should be the later of the wall clock and the last
    /// time on record, in case the wall clock was set back between two runs.
    pub fn starting_at(base: RegistryTime) -> Self {
        Self { base, started: Instant::now() }
    }
}

impl TimeSource for MonotonicClock {
    fn now(&self) -> RegistryTime {
        self.base + Span::from_millis(self.started.elapsed().as_millis() as u64)
    }
}

/// A clock for tests, moved by hand.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Creates a clock that reads `now` until moved.
    pub fn at(now: RegistryTime) -> Self {
        Self(AtomicU64::new(now.as_millis()))
    }

    /// Moves the clock forward.
    pub fn advance(&self, span: Span) {
        self.0.fetch_add(span.as_millis(), Ordering::SeqCst);
    }

    /// Sets the clock to any time, even an earlier time.
    pub fn set(&self, now: RegistryTime) {
        self.0.store(now.as_millis(), Ordering::SeqCst);
    }
}

impl TimeSource for ManualClock {
    fn now(&self) -> RegistryTime {
        RegistryTime::from_millis(self.0.load(Ordering::SeqCst))
    }
}

impl<T: TimeSource> TimeSource for std::sync::Arc<T> {
    fn now(&self) -> RegistryTime {
        T::now(self)
    }
}
