//! Denials go on record too, but cannot be used to fill the disk.

use serde::{Deserialize, Serialize};

use crate::{Denial, Denied, Holder, RegistryTime, Span};

/// How many denials of one pool are recorded one by one within a window.
pub const DENIALS_RECORDED_PER_WINDOW_MAX: u32 = 10;

/// The window in which denials are counted: past the bound, one record a window.
pub const DENIAL_WINDOW: Span = Span::from_secs(60);

/// One pool's denials of the current window. A registry that keeps it in a store writes its parts down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DenialFold {
    /// When the window began.
    pub window_started: RegistryTime,
    /// How many denials of the window were recorded one by one.
    pub recorded: u32,
    /// How many were counted only since the last record.
    pub folded: u64,
    /// Who was denied last, and why.
    pub last: (Holder, Denial),
}

/// What one denial brings onto record: nothing, itself, the count of the window before, or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Folded {
    /// The denials of an earlier window that were counted only.
    pub earlier: Option<Denied>,
    /// This denial.
    pub this: Option<Denied>,
}

impl DenialFold {
    /// Starts with a first denial, which is recorded.
    pub fn start(holder: Holder, why: Denial, now: RegistryTime) -> (Self, Denied) {
        let fold = Self { window_started: now, recorded: 1, folded: 0, last: (holder, why) };
        let first = fold.record(1, false);
        (fold, first)
    }

    /// Takes in another denial.
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

    /// The record of what was counted only, once its window is over.
    pub fn flush(&mut self, now: RegistryTime) -> Option<Denied> {
        if self.folded == 0 || !self.window_over(now) {
            return None;
        }
        let count = std::mem::take(&mut self.folded);
        Some(self.record(count, true))
    }

    /// When [`flush`](Self::flush) will have a record; none while nothing was counted only.
    pub fn due(&self) -> Option<RegistryTime> {
        (self.folded > 0).then(|| self.window_started + DENIAL_WINDOW)
    }

    /// Whether its window is over and all of it is on record, so that it can be forgotten.
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
