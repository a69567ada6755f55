//! The run's own clock.

use std::ops::Add;
use std::time::{Duration, Instant};

/// A time on the clients' side, counted from the start of the run on a monotonic clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// The moment `millis` milliseconds into the run.
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    /// How far into the run it is.
    pub const fn into_run(self) -> Duration {
        self.0
    }

    /// How long after `earlier` it is; zero if it is not after it.
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

/// Reads moments.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    started: Instant,
}

impl Stopwatch {
    /// A stopwatch that reads zero now.
    pub fn start() -> Self {
        Self { started: Instant::now() }
    }

    /// The moment now.
    pub fn now(&self) -> Moment {
        Moment(self.started.elapsed())
    }
}
