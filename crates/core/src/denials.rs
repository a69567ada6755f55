//! Throttles the records of denials, so that a client cannot fill the disk.
//!
//! Invariant: every denial is counted in exactly one record.

use serde::{Deserialize, Serialize};

use crate::{Denial, Denied, Holder, RegistryTime, Span};

/// Most denials of a pool with a record of their own, per window.
pub const DENIALS_RECORDED_PER_WINDOW_MAX: u32 = 10;

/// The window for counting denials. Beyond the limit, a window has a single record for the rest.
pub const DENIAL_WINDOW: Span = Span::from_secs(60);

/// The denials of a pool in the current window. A registry backed by a store writes the fields down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenialFold {
    /// Start of the window.
    pub window_started: RegistryTime,
    /// Denials of the window with a record of their own.
    pub recorded: u32,
    /// Denials counted since the last record.
    pub folded: u64,
    /// Holder and reason of the last denial.
    pub last: (Holder, Denial),
}

/// The records due after a denial: none, the denial, the count of an earlier window, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// The count of an earlier window.
    pub earlier: Option<Denied>,
    /// The record of the new denial.
    pub this: Option<Denied>,
}

impl DenialFold {
    /// Starts a window with its first denial, recorded at once.
    pub fn start(holder: Holder, why: Denial, now: RegistryTime) -> (Self, Denied) {
        let fold = Self { window_started: now, recorded: 1, folded: 0, last: (holder, why) };
        let first = fold.record(1, false);
        (fold, first)
    }

    /// Adds a denial.
    pub fn note(&mut self, holder: Holder, why: Denial, now: RegistryTime) -> Folded {
        let earlier = self.flush(now);
        if self.window_over(now) {
            self.window_started = now;
            self.recorded = 0;
        }
        self.last = (holder, why);
        if self.recorded < DENIALS_RECORDED_PER_WINDOW_MAX {
            self.recorded += 1;
            let this = Some(self.record(1, false));
            return Folded { earlier, this };
        }
        self.folded += 1;
        Folded { earlier, this: None }
    }

    /// Returns the record of the counted denials, once their window is over.
    pub fn flush(&mut self, now: RegistryTime) -> Option<Denied> {
        if self.folded == 0 || !self.window_over(now) {
            return None;
        }
        let count = std::mem::take(&mut self.folded);
        Some(self.record(count, true))
    }

    /// Returns the due time of the next record by [`flush`](Self::flush). `None` while no denial is counted.
    pub fn due(&self) -> Option<RegistryTime> {
        (self.folded > 0).then(|| self.window_started + DENIAL_WINDOW)
    }

    /// Returns `true` if the window is over and every denial is on record: the caller may drop the value.
    pub fn is_spent(&self, now: RegistryTime) -> bool {
        self.folded == 0 && self.window_over(now)
    }

    fn window_over(&self, now: RegistryTime) -> bool {
        now >= self.window_started + DENIAL_WINDOW
    }

    fn record(&self, count: u64, folded: bool) -> Denied {
        let (holder, why) = self.last.clone();
        Denied { holder, why, count, folded }
    }
}

#[cfg(test)]
mod tests;
