//! Three clocks that a vector sets.

use std::time::Duration;

use seatkeeper_client_core::{Deadline, Now};

/// The clocks of one holder. They start at readings that differ, so that no code takes one for another.
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

    /// The point that a vector calls `at`: so long after its beginning.
    pub(crate) fn point(&self, at: Duration) -> Deadline {
        Deadline::from_boot(self.began + at)
    }

    /// How long ago the vector began when `deadline` comes.
    pub(crate) fn since_beginning(&self, deadline: Deadline) -> Duration {
        deadline.boot().saturating_sub(self.began)
    }

    /// Lets the time of a machine that is awake pass.
    pub(crate) fn advance(&mut self, span: Duration) {
        self.now.mono += span;
        self.sleep(span);
    }

    /// Lets the time of a machine that sleeps pass.
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
