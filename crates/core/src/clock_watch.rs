//! A store's clock, held against a monotonic clock.

use crate::{RegistryTime, Span};

/// The furthest that a store's clock and a monotonic clock come apart between two readings by their rates alone.
pub const CLOCK_TOLERANCE: Span = Span::from_millis(1_000);

/// A store's clock counts as steady once it has agreed with the monotonic clock for this time. Readings are compared
/// with one that is about as old, so that the difference of the two rates does not add up.
pub const CLOCK_SETTLING: Span = Span::from_secs(60);

/// A reading of a store's clock, and of a monotonic clock before and after it. The monotonic clock may begin anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// The time that the store told.
    pub time: RegistryTime,
    /// The monotonic clock when the store was asked.
    pub asked: Span,
    /// The monotonic clock when the answer was there.
    pub answered: Span,
}

/// The state of a store's clock by a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockState {
    /// The clock has not agreed with the monotonic clock for [`CLOCK_SETTLING`] yet.
    Settling,
    /// The clock has agreed with the monotonic clock for [`CLOCK_SETTLING`] at least.
    Steady,
    /// The clock was set since an earlier reading: nothing may be deleted by its time now.
    Stepped {
        /// How far it went, in milliseconds; less than 0: it was set back.
        by_millis: i64,
    },
}

/// Watches a store's clock: a clock that is set, that stands still or that shows one wrong time is found by the next
/// reading.
///
/// A pure function of what it is fed with. Readings may come in any order, as they do from several tasks, and must come
/// every ten minutes at least: over a longer time the rates of two healthy clocks differ by more than the tolerance.
#[derive(Clone, Debug, Default)]
pub struct ClockWatch {
    reference: Option<ClockReading>,
    is_steady: bool,
}

impl ClockWatch {
    /// A watch that has seen no reading yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a reading, and says how the clock is by it. A reading whose answer took longer than [`CLOCK_TOLERANCE`]
    /// proves no more than that the clock was not set by more than that: its own state is never `Steady`.
    pub fn note(&mut self, reading: ClockReading) -> ClockState {
        let Some(reference) = self.reference else {
            self.reference = reading.is_exact().then_some(reading);
            return ClockState::Settling;
        };
        let by_millis = reading.apart_from(reference);
        if by_millis.unsigned_abs() > CLOCK_TOLERANCE.as_millis() {
            self.reference = reading.is_exact().then_some(reading);
            self.is_steady = false;
            return ClockState::Stepped { by_millis };
        }
        if !reading.is_exact() {
            return ClockState::Settling;
        }
        let agreed_for = reading.asked.as_millis().saturating_sub(reference.answered.as_millis());
        if agreed_for >= CLOCK_SETTLING.as_millis() {
            self.reference = Some(reading);
            self.is_steady = true;
        }
        if self.is_steady { ClockState::Steady } else { ClockState::Settling }
    }
}

impl ClockReading {
    fn is_exact(self) -> bool {
        self.answered.as_millis().saturating_sub(self.asked.as_millis()) <= CLOCK_TOLERANCE.as_millis()
    }

    /// How far the store's clock is ahead of the monotonic clock, at least and at most, in milliseconds.
    fn offset(self) -> (i128, i128) {
        let time = i128::from(self.time.as_millis());
        (time - i128::from(self.answered.as_millis()), time - i128::from(self.asked.as_millis()))
    }

    /// Returns how far the store's clock went ahead of the monotonic clock since another reading, in milliseconds: the
    /// least that explains both readings. Less than 0: it stayed behind, or was set back.
    pub fn apart_from(self, other: Self) -> i64 {
        let ((least, most), (other_least, other_most)) = (self.offset(), other.offset());
        let by = if least > other_most {
            least - other_most
        } else if most < other_least {
            most - other_least
        } else {
            0
        };
        i64::try_from(by).unwrap_or(if by < 0 { i64::MIN } else { i64::MAX })
    }
}

#[cfg(test)]
mod tests;
