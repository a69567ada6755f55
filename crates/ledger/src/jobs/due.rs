//! Decides when a job can be taken.

use seatkeeper_core::{RegistryTime, Span};

use super::LOCK_TIMEOUT;
use super::schedule::BACKOFF_MAX;
use crate::Error;
use crate::database::Row;
use crate::row::Fields;

/// A right clock puts the end of a lock at most [`LOCK_TIMEOUT`] ahead. Twice the time spares the lock of a live run from
/// a small step of the clock.
const LOCK_AHEAD_MAX: Span = Span::from_secs(2 * LOCK_TIMEOUT.as_secs_floor());

/// The time from which a job can be taken: the due time of an unlocked job, or the end of the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobDue {
    at: RegistryTime,
    /// Longest wait for `at` by a right clock.
    ahead_max: Span,
}

impl JobDue {
    /// Returns whether the job can be taken at `now`: the time has come, or a wrong clock set the time. A right clock
    /// sets a retry at most the longest backoff ahead, the next run at most an interval, and the end of a lock at most
    /// twice [`LOCK_TIMEOUT`]. So a job waits for a wrong time no longer than for a right time.
    pub fn has_come(self, now: RegistryTime) -> bool {
        self.at <= now || self.at > now + self.ahead_max
    }

    pub(super) fn read(row: &Row) -> Result<Self, Error> {
        let fields = Fields(row);
        if let Some(at) = fields.time_maybe("locked_until")? {
            return Ok(Self { at, ahead_max: LOCK_AHEAD_MAX });
        }
        match fields.time_maybe("retry_at")? {
            Some(at) => Ok(Self { at, ahead_max: BACKOFF_MAX }),
            None => Ok(Self { at: fields.time("next_run_at")?, ahead_max: fields.span("interval_ms")? }),
        }
    }
}
