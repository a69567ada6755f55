//! Clocks of the memory backend.

mod pauses;

use std::sync::atomic::{AtomicU64, Ordering};

use pauses::Pauses;
use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_host_clock::HostInstant;

/// A source of registry time, not necessarily monotonic: the registry keeps a high-water mark.
pub trait TimeSource: Send + Sync + 'static {
    /// Returns the current time.
    fn now(&self) -> RegistryTime;

    /// Returns the end of the latest pause of the process by the latest [`now`](Self::now); zero without a pause.
    /// No holder could renew a session during a pause, so every session gets a full TTL from this time.
    fn resumed(&self) -> RegistryTime {
        RegistryTime::default()
    }
}

/// A clock that cannot be set: it starts at a given time and runs with the host's [`HostInstant`].
///
/// After its first reading the clock must be read at least once a second: five seconds between two readings count as
/// a pause of the process.
#[derive(Debug)]
pub struct MonotonicClock {
    base: RegistryTime,
    started: HostInstant,
    pauses: Pauses,
}

impl MonotonicClock {
    /// Creates a clock that reads `base` at first. `base` should be the later of the wall clock and the last
    /// time on record, in case the wall clock was set back between two runs.
    pub fn starting_at(base: RegistryTime) -> Self {
        Self { base, started: HostInstant::now(), pauses: Pauses::default() }
    }
}

impl TimeSource for MonotonicClock {
    fn now(&self) -> RegistryTime {
        let now = self.base + Span::from_millis(self.started.elapsed().as_millis() as u64);
        self.pauses.note(now);
        now
    }

    fn resumed(&self) -> RegistryTime {
        self.pauses.resumed()
    }
}

/// A clock for tests, moved by hand.
#[derive(Debug, Default)]
pub struct ManualClock {
    now: AtomicU64,
    resumed: AtomicU64,
}

impl ManualClock {
    /// Creates a clock that reads `now` until moved.
    pub fn at(now: RegistryTime) -> Self {
        Self { now: AtomicU64::new(now.as_millis()), resumed: AtomicU64::default() }
    }

    /// Moves the clock forward.
    pub fn advance(&self, span: Span) {
        self.now.fetch_add(span.as_millis(), Ordering::SeqCst);
    }

    /// Moves the clock forward by a pause of the process.
    pub fn pause(&self, span: Span) {
        self.advance(span);
        self.resumed.store(self.now().as_millis(), Ordering::SeqCst);
    }

    /// Sets the clock to any time, even an earlier time.
    pub fn set(&self, now: RegistryTime) {
        self.now.store(now.as_millis(), Ordering::SeqCst);
    }
}

impl TimeSource for ManualClock {
    fn now(&self) -> RegistryTime {
        RegistryTime::from_millis(self.now.load(Ordering::SeqCst))
    }

    fn resumed(&self) -> RegistryTime {
        RegistryTime::from_millis(self.resumed.load(Ordering::SeqCst))
    }
}

impl<T: TimeSource> TimeSource for std::sync::Arc<T> {
    fn now(&self) -> RegistryTime {
        T::now(self)
    }

    fn resumed(&self) -> RegistryTime {
        T::resumed(self)
    }
}
