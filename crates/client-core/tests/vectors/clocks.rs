//! Three clocks that a vector sets.

use std::time::Duration;

use seatkeeper_client_core::{Deadline, Now};

/// The clocks of one holder. Different initial readings expose code that mixes up two clocks.
pub(crate) struct Clocks {
    now: Now,
    began: Duration,
}

impl Clocks {
    pub(crate) fn new() -> Self {
        let boot = Duration::from_secs(1_000_000);
        let mono = Duration::from_secs(5_000);
        Self { now: Now { mono, boot, wall: Duration::from_secs(1_800_000_000) }, began: boot }
    }

    pub(crate) fn now(&self) -> Now {
        self.now
    }

    /// Returns the `boot` time of the span `at` since the beginning.
    pub(crate) fn point(&self, at: Duration) -> Deadline {
        Deadline::from_boot(self.began + at)
    }

    /// Returns the span from the beginning to `deadline`.
    pub(crate) fn since_beginning(&self, deadline: Deadline) -> Duration {
        deadline.boot().saturating_sub(self.began)
    }

    /// Advances all three clocks.
    pub(crate) fn advance(&mut self, span: Duration) {
        self.now.mono += span;
        self.sleep(span);
    }

    /// Advances `boot` and `wall` only, as sleep does.
    pub(crate) fn sleep(&mut self, span: Duration) {
        self.now.boot += span;
        self.now.wall += span;
    }

    /// Sets the wall clock alone.
    pub(crate) fn jump(&mut self, span: Duration, back: bool) {
        let wall = self.now.wall;
        self.now.wall = if back { wall.saturating_sub(span) } else { wall + span };
    }
}
