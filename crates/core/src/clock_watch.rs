//! Detects steps of a store's clock by comparison with a monotonic clock.

use crate::{RegistryTime, Span};

/// Largest drift between a store's clock and a monotonic clock from reading to reading. A larger difference
/// is a step.
pub const CLOCK_TOLERANCE: Span = Span::from_millis(1_000);

/// Period of agreement with the monotonic clock before a store's clock counts as steady. The reference
/// reading is replaced at the same interval, so that the drift of two healthy clocks does not add up.
pub const CLOCK_SETTLING: Span = Span::from_secs(60);

/// A reading of a store's clock, between two readings of a monotonic clock of any origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockReading {
    /// Time of the store's clock.
    pub time: RegistryTime,
    /// Monotonic time before the request to the store.
    pub asked: Span,
    /// Monotonic time after the store's answer.
    pub answered: Span,
}

/// The state of a store's clock after a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockState {
    /// The clock has agreed with the monotonic clock for less than [`CLOCK_SETTLING`].
    Settling,
    /// The clock has agreed with the monotonic clock for [`CLOCK_SETTLING`] or longer.
    Steady,
    /// The clock was set since an earlier reading. Nothing may be deleted by its time.
    Stepped {
        /// Size of the step in milliseconds. Negative if the clock was set back.
        by_millis: i64,
    },
}

/// Watches a store's clock. The next reading detects a clock that was set, stands still or showed a single
/// wrong time.
///
/// A pure state machine over its readings. Readings from several tasks may come in any order. At least one
/// reading must come every ten minutes: over a longer time the rates of two healthy clocks differ by more
/// than the tolerance.
#[derive(Clone, Debug, Default)]
pub struct ClockWatch {
    reference: Option<ClockReading>,
    is_steady: bool,
}

impl ClockWatch {
    /// Creates a watch without any reading.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a reading and returns the state of the clock. A reading that took longer than [`CLOCK_TOLERANCE`]
    /// can reveal a large step only, so the state is `Settling` or `Stepped`, never `Steady`.
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
    /// Returns the duration of the request. The reading is exact up to this span.
    pub fn took(self) -> Span {
        Span::from_millis(self.answered.as_millis().saturating_sub(self.asked.as_millis()))
    }

    fn is_exact(self) -> bool {
        self.took() <= CLOCK_TOLERANCE
    }

    /// Returns the least and the greatest offset of the store's clock from the monotonic clock, in
    /// milliseconds.
    fn offset(self) -> (i128, i128) {
        let time = i128::from(self.time.as_millis());
        (time - i128::from(self.answered.as_millis()), time - i128::from(self.asked.as_millis()))
    }

    /// Returns the advance of the store's clock over the monotonic clock between `other` and `self`, in
    /// milliseconds: the smallest value consistent with the two readings. Negative if the clock fell behind
    /// or was set back.
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
