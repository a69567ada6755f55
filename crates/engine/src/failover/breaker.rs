//! Whether a bucket's server can be reached, told by how it went for a while and not by single calls.

use std::time::{Duration, Instant};

/// For how long every try has failed when a server counts as out of reach.
const OPENS_AFTER: Duration = Duration::from_secs(3);

/// For how long every try has gone well when it counts as back: three tries of a probe.
const CLOSES_AFTER: Duration = Duration::from_secs(1);

/// What the latest tries of one server tell.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Breaker {
    is_open: bool,
    /// Since when every try told the opposite.
    against_since: Option<Instant>,
}

impl Breaker {
    /// Whether the server counts as out of reach.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Notes how a try went, and says whether that changed anything.
    pub(super) fn note(&mut self, went_well: bool, now: Instant) -> bool {
        if went_well != self.is_open {
            self.against_since = None;
            return false;
        }
        let since = *self.against_since.get_or_insert(now);
        let patience = if self.is_open { CLOSES_AFTER } else { OPENS_AFTER };
        if now.duration_since(since) < patience {
            return false;
        }
        (self.is_open, self.against_since) = (!self.is_open, None);
        true
    }
}

#[cfg(test)]
mod tests;
