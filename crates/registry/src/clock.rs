//! Where a registry in memory gets its time from.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use seatkeeper_core::{RegistryTime, Span};

/// A source of registry time. It need not be monotone: the registry keeps a high-water mark.
pub trait TimeSource: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> RegistryTime;
}

/// A clock that nobody can set: it starts where it is told and then counts on its own.
#[derive(Debug)]
pub struct MonotonicClock {
    base: RegistryTime,
    started: Instant,
}

impl MonotonicClock {
    /// A clock that reads `base` now. To survive a wall clock that was set back between two runs,
    /// let `base` be the later of the wall clock and the last time on record.
    pub fn starting_at(base: RegistryTime) -> Self {
        Self { base, started: Instant::now() }
    }
}

impl TimeSource for MonotonicClock {
    fn now(&self) -> RegistryTime {
        self.base + Span::from_millis(self.started.elapsed().as_millis() as u64)
    }
}

/// A clock that tests turn by hand.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that reads `now` until it is turned.
    pub fn at(now: RegistryTime) -> Self {
        Self(AtomicU64::new(now.as_millis()))
    }

    /// Turns it forward.
    pub fn advance(&self, span: Span) {
        self.0.fetch_add(span.as_millis(), Ordering::SeqCst);
    }

    /// Sets it to any time, also an earlier one.
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
