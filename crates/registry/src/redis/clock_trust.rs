//! Watches a server's clock for jumps.
//!
//! A clock that jumps forward would end every session at once. The lease of a bucket keeps scripts from doing so
//! (`lib/bucket.lua`); this keeps nodes from starting a bucket anew on a clock that is wrong for a moment or for good.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use seatkeeper_core::{CLOCK_TOLERANCE, ClockReading, RegistryTime, Span};

/// A jump forward of more than this is not believed at once.
const STEP_DOUBTFUL: Span = Span::from_secs(10);

/// A clock is believed once it has run on for this time after a doubtful jump.
const SETTLES_AFTER: Span = Span::from_secs(2);

/// The largest distance of a clock that has jumped from this node's wall clock. Further than that it is never believed.
const APART_MAX: Duration = Duration::from_secs(600);

/// Says whether the clock of one server is to be believed, by holding it against this process's monotonic clock.
#[derive(Debug)]
pub(super) struct ClockTrust {
    /// The monotonic clock is counted from here.
    started: Instant,
    believed: Option<ClockReading>,
    /// The first reading behind a jump that is not believed yet.
    doubted: Option<ClockReading>,
}

impl Default for ClockTrust {
    fn default() -> Self {
        Self { started: Instant::now(), believed: None, doubted: None }
    }
}

impl ClockTrust {
    /// Takes the time that a server told which was asked at `asked`. An error says why its clock is not believed at present.
    #[expect(clippy::disallowed_methods, reason = "the wall clock only keeps a jump from being believed")]
    pub(super) fn check(&mut self, time: RegistryTime, asked: Instant) -> Result<(), Arc<str>> {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let since_start = |at: Instant| Span::from_millis(at.duration_since(self.started).as_millis() as u64);
        let (asked, answered) = (since_start(asked), since_start(Instant::now()));
        self.check_at(ClockReading { time, asked, answered }, wall)
    }

    fn check_at(&mut self, now: ClockReading, wall: Duration) -> Result<(), Arc<str>> {
        let Some(believed) = self.believed else {
            self.believed = Some(now);
            return Ok(());
        };
        let ahead_ms = now.apart_from(believed);
        if ahead_ms <= millis(STEP_DOUBTFUL) {
            if ahead_ms.unsigned_abs() > CLOCK_TOLERANCE.as_millis() {
                tracing::error!(
                    ahead_ms,
                    "the clock of Redis was stepped: sessions expire that much earlier or later; check its host's NTP"
                );
            }
            (self.believed, self.doubted) = (Some(now), None);
            return Ok(());
        }
        let runs_on =
            |since: &ClockReading| now.apart_from(*since).unsigned_abs() <= CLOCK_TOLERANCE.as_millis();
        let since = match self.doubted.filter(runs_on) {
            Some(since) => since,
            None => {
                tracing::error!(
                    ahead_ms,
                    "the clock of Redis jumped: no session expires by it until it has settled; check its host's NTP"
                );
                *self.doubted.insert(now)
            }
        };
        let apart = wall.abs_diff(Duration::from_millis(now.time.as_millis()));
        let ran_on_for = now.asked.as_millis().saturating_sub(since.answered.as_millis());
        if apart <= APART_MAX && ran_on_for >= SETTLES_AFTER.as_millis() {
            (self.believed, self.doubted) = (Some(now), None);
            return Ok(());
        }
        Err(format!("its clock jumped {} s ahead", ahead_ms / 1_000).into())
    }
}

fn millis(span: Span) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
