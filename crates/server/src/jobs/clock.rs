//! The time that jobs go by: the registry's, held against this node's monotonic clock.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use seatkeeper_core::{CLOCK_SETTLING, ClockReading, ClockState, ClockWatch, RegistryTime, Span};
use seatkeeper_registry::Registry;

use super::Job;
use crate::error::Error;

/// The clock of all jobs of a node.
pub(crate) struct JobClock {
    registry: Arc<dyn Registry>,
    /// `None`: the registry's clock is this process's own monotonic clock.
    watched: Option<Mutex<Watched>>,
    started: Instant,
}

#[derive(Default)]
struct Watched {
    watch: ClockWatch,
    /// When the clock last stepped and when that was last logged, on the monotonic clock.
    stepped: Option<Span>,
    logged: Option<Span>,
}

/// A time, and what may be done by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobTime {
    pub(crate) now: RegistryTime,
    /// Jobs may be taken: the clock was not set a short time ago.
    pub(crate) may_schedule: bool,
    /// Records may be deleted by their age: the clock has been steady for a while.
    pub(crate) may_delete: bool,
}

impl JobClock {
    /// The clock of a registry in this process.
    pub(crate) fn of_process(registry: Arc<dyn Registry>) -> Self {
        Self { registry, watched: None, started: Instant::now() }
    }

    /// The clock of a server that nodes share, which somebody may set.
    pub(crate) fn of_server(registry: Arc<dyn Registry>) -> Self {
        Self { registry, watched: Some(Mutex::default()), started: Instant::now() }
    }

    /// Checks that jobs go by the process's monotonic clock. Readings of such a clock cost nothing.
    pub(super) fn is_process_own(&self) -> bool {
        self.watched.is_none()
    }

    /// Reads the clock.
    pub(crate) async fn read(&self) -> Result<JobTime, Error> {
        let asked = self.monotonic();
        let time = self.registry.now().await?;
        let reading = ClockReading { time, asked, answered: self.monotonic() };
        Ok(self
            .watched
            .as_ref()
            .map_or(JobTime { now: time, may_schedule: true, may_delete: true }, |watched| {
                watched.lock().note(reading)
            }))
    }

    /// Reads the clock for work that writes dates. Returns `Err(ClockUnsettled)` if the clock was set a short time ago.
    pub(crate) async fn read_to_schedule(&self) -> Result<RegistryTime, Error> {
        let time = self.read().await?;
        if time.may_schedule { Ok(time.now) } else { Err(Error::ClockUnsettled) }
    }

    /// Reads the clock for work that deletes; an error unless records may be deleted by it now.
    pub(crate) async fn read_to_delete(&self) -> Result<RegistryTime, Error> {
        let time = self.read().await?;
        if time.may_delete { Ok(time.now) } else { Err(Error::ClockUnsettled) }
    }

    fn monotonic(&self) -> Span {
        Span::from_millis(self.started.elapsed().as_millis() as u64)
    }
}

impl JobTime {
    /// Returns whether a job may be taken at this time. By a wrong time a lock seems stale that is not, and the next run would
    /// be due in years or not at all.
    pub(super) fn allows(&self, job: &impl Job) -> bool {
        self.may_schedule && (self.may_delete || !job.is_destructive())
    }
}

impl Watched {
    fn note(&mut self, reading: ClockReading) -> JobTime {
        let (state, now) = (self.watch.note(reading), reading.answered);
        if let ClockState::Stepped { by_millis } = state {
            self.stepped = Some(now);
            self.tell(by_millis, now);
        }
        JobTime {
            now: reading.time,
            may_schedule: !is_recent(self.stepped, now),
            may_delete: state == ClockState::Steady,
        }
    }

    /// Logs a step, but not each one of a clock that is set again and again.
    fn tell(&mut self, by_millis: i64, now: Span) {
        if !is_recent(self.logged, now) {
            self.logged = Some(now);
            tracing::warn!(
                by_millis,
                "the clock of the registry's server was set: jobs wait, and nothing is deleted by its age, until that \
                 clock has been steady for a minute; synchronise the time of the server of PostgreSQL (or Redis)"
            );
        }
    }
}

fn is_recent(then: Option<Span>, now: Span) -> bool {
    then.is_some_and(|then| now.as_millis().saturating_sub(then.as_millis()) < CLOCK_SETTLING.as_millis())
}

#[cfg(test)]
mod tests;
