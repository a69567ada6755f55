//! The clock of a run.

use std::ops::Add;
use std::time::{Duration, Instant};

/// A time on the clients' side, counted from the start of the run on a monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// Returns the moment `millis` milliseconds into the run.
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// Returns the time since the start of the run.
    pub const fn into_run(self) -> Duration {
        self.0
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Moment {
    type Output = Self;
    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

/// A source of moments.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    started: Instant,
}

impl Stopwatch {
    /// Starts a stopwatch at zero.
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// Returns the current moment.
    pub fn now(&self) -> Moment {
        Moment(self.started.elapsed())
    }
}
