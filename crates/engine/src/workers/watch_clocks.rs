//! Reads the clocks of an embedded engine once a second. Readings of the registry's clock that are further apart show a pause
//! of the process. The host's wall clock, compared with the monotonic clock, shows that somebody has set it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use seatkeeper_core::{ClockReading, ClockState, ClockWatch, RegistryTime, Span};
use seatkeeper_host_clock::HostInstant;
use seatkeeper_registry::{ClockSteps, Registry};

use crate::error::Error;
use crate::wall_clock;
use crate::worker::{Progress, Worker};

/// The interval between two readings, as [`MonotonicClock`](seatkeeper_registry::MonotonicClock) demands.
const INTERVAL: Duration = Duration::from_secs(1);

/// The worker that reads the clocks, also on a server without requests and without a sweeper.
pub(crate) struct WatchClocks {
    registry: Arc<dyn Registry>,
    wall: WallClock,
}

/// The wall clock of the host, which decides the validity of tokens and the start of the registry's clock.
struct WallClock {
    started: HostInstant,
    watch: Mutex<ClockWatch>,
    steps: Arc<ClockSteps>,
}

impl WatchClocks {
    /// Creates the worker, which counts the steps of the wall clock in `steps`.
    pub(crate) fn new(registry: Arc<dyn Registry>, steps: Arc<ClockSteps>) -> Self {
        Self { registry, wall: WallClock { started: HostInstant::now(), watch: Mutex::default(), steps } }
    }
}

impl WallClock {
    /// Compares a reading with the monotonic clock.
    fn note(&self, read: impl FnOnce() -> RegistryTime) {
        let asked = self.monotonic();
        let reading = ClockReading { time: read(), asked, answered: self.monotonic() };
        let ClockState::Stepped { by_millis } = self.watch.lock().note(reading) else { return };
        self.steps.note(by_millis);
        tracing::error!(
            ahead_ms = by_millis,
            "the clock of this host was set: sessions go on by a clock that cannot be set, but tokens begin and end by the \
             host's clock, and so does the next start; check NTP on this host"
        );
    }

    fn monotonic(&self) -> Span {
        Span::from_millis(self.started.elapsed().as_millis() as u64)
    }
}

#[async_trait]
impl Worker for WatchClocks {
    type Error = Error;

    fn name(&self) -> &'static str {
        "watch clocks"
    }

    fn rest(&self) -> Duration {
        INTERVAL
    }

    async fn activate(&self) -> Result<Progress, Error> {
        self.wall.note(wall_clock::registry_now);
        self.registry.now().await?;
        Ok(Progress::Idle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_the_wall_clock_are_counted_in_both_directions() {
        let steps = Arc::new(ClockSteps::default());
        let (started, watch) = (HostInstant::now(), Mutex::default());
        let wall = WallClock { started, watch, steps: Arc::clone(&steps) };
        let now = RegistryTime::from_millis(1_000_000);
        for time in [now, now, now + Span::from_secs(400), now + Span::from_secs(400), now] {
            wall.note(|| time);
        }
        assert_eq!((steps.ahead(), steps.behind()), (1, 1));
    }
}
