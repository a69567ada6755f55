//! The clock of jobs: the registry's time, checked against this node's monotonic clock.
//!
//! Jobs write dates only while the registry's clock agrees with the monotonic clock.

use std::sync::Arc;

use parking_lot::Mutex;
use seatkeeper_core::{
    CLOCK_SETTLING, CLOCK_TOLERANCE, ClockReading, ClockState, ClockWatch, RegistryTime, Span,
};
use seatkeeper_host_clock::HostInstant;
use seatkeeper_registry::{Registry, TimeReading};

use super::Job;
use crate::error::Error;

/// The clock of all jobs of a node.
pub(crate) struct JobClock {
    registry: Arc<dyn Registry>,
    /// `None` if the registry's clock is the monotonic clock of this process.
    watched: Option<Mutex<Watched>>,
    started: HostInstant,
}

#[derive(Default)]
struct Watched {
    watch: ClockWatch,
    /// When the clock last stepped, and when a step was last logged, on the monotonic clock.
    stepped: Option<Span>,
    logged: Option<Span>,
    /// The first of the latest readings that found registry time frozen; `None` while time runs.
    frozen_since: Option<Span>,
    /// When frozen time was last logged.
    freeze_logged: Option<Span>,
}

/// A reading of the clock, with the work that the reading permits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobTime {
    pub(crate) now: RegistryTime,
    /// Permits taking jobs: time runs, and the clock did not step within `CLOCK_SETTLING`.
    pub(crate) may_schedule: bool,
    /// Permits the deletion of records by age: the clock has been steady for `CLOCK_SETTLING`.
    pub(crate) is_steady: bool,
}

impl JobClock {
    /// Creates the clock of a registry in this process.
    pub(crate) fn of_process(registry: Arc<dyn Registry>) -> Self {
        Self { registry, watched: None, started: HostInstant::now() }
    }

    /// Creates the clock of a server that nodes share. An operator may set such a clock, so each reading is
    /// checked.
    pub(crate) fn of_server(registry: Arc<dyn Registry>) -> Self {
        Self { registry, watched: Some(Mutex::default()), started: HostInstant::now() }
    }

    /// Returns whether jobs go by the process's monotonic clock. Readings of such a clock cost nothing.
    pub(super) fn is_process_own(&self) -> bool {
        self.watched.is_none()
    }

    /// Reads the clock.
    pub(crate) async fn read(&self) -> Result<JobTime, Error> {
        let asked = self.monotonic();
        let TimeReading { now, is_frozen } = self.registry.read_time().await?;
        let reading = ClockReading { time: now, asked, answered: self.monotonic() };
        let Some(watched) = &self.watched else {
            return Ok(JobTime { now, may_schedule: true, is_steady: true });
        };
        let mut watched = watched.lock();
        Ok(if is_frozen { watched.note_frozen(reading) } else { watched.note(reading) })
    }

    /// Reads the clock for work that writes dates. Returns `Err(ClockUnsettled)` if registry time stands still, or the
    /// clock was set a short time ago.
    pub(crate) async fn read_to_schedule(&self) -> Result<RegistryTime, Error> {
        let time = self.read().await?;
        if time.may_schedule { Ok(time.now) } else { Err(Error::ClockUnsettled) }
    }

    /// Reads a steady clock. Returns `Err(ClockUnsettled)` until the clock has been steady for `CLOCK_SETTLING`.
    /// Jobs that delete read the [`TrustedClock`](super::TrustedClock) instead.
    pub(super) async fn read_steady(&self) -> Result<RegistryTime, Error> {
        let time = self.read().await?;
        if time.is_steady { Ok(time.now) } else { Err(Error::ClockUnsettled) }
    }

    /// Returns the time for which this node has been up at `now`, since `started_at`. A registry in this process counts
    /// by the monotonic clock itself. A server's clock may have been set meanwhile and does not count.
    pub(super) fn uptime(&self, started_at: RegistryTime, now: RegistryTime) -> Span {
        if self.is_process_own() { now.since(started_at) } else { self.monotonic() }
    }

    fn monotonic(&self) -> Span {
        Span::from_millis(self.started.elapsed().as_millis() as u64)
    }
}

impl JobTime {
    /// Returns whether `job` may be taken at this time. By a wrong time a valid lock could seem stale, and
    /// the next run could be due years later or never.
    pub(super) fn allows(&self, job: &impl Job) -> bool {
        self.may_schedule && (self.is_steady || !job.needs_steady_clock())
    }
}

impl Watched {
    /// Notes a reading of a time that runs.
    fn note(&mut self, reading: ClockReading) -> JobTime {
        self.frozen_since = None;
        let (state, now) = (self.watch.note(reading), reading.answered);
        if let ClockState::Stepped { by_millis } = state {
            self.stepped = Some(now);
            self.tell(by_millis, now);
        }
        JobTime {
            now: reading.time,
            may_schedule: !is_recent(self.stepped, now),
            is_steady: state == ClockState::Steady,
        }
    }

    /// Notes a reading of a time that stands still by design. The reading says nothing about the clock, so
    /// [`ClockWatch`] does not see the reading. Once time runs again, the watch compares the clock with the latest
    /// reading from before: jobs go on at once, unless the clock was set meanwhile.
    fn note_frozen(&mut self, reading: ClockReading) -> JobTime {
        let now = reading.answered;
        let since = *self.frozen_since.get_or_insert(now);
        let is_short = now.as_millis().saturating_sub(since.as_millis()) < CLOCK_TOLERANCE.as_millis();
        if !is_short && !is_recent(self.freeze_logged, now) {
            self.freeze_logged = Some(now);
            tracing::warn!(
                "registry time stands still, to protect sessions whose holders cannot heartbeat: no session expires, and \
                 jobs wait, until time runs again; check whether heartbeats reach PostgreSQL (its load, and the network \
                 to its server), and whether the log says that the clock of PostgreSQL jumped"
            );
        }
        JobTime { now: reading.time, may_schedule: false, is_steady: false }
    }

    /// Logs a step of the clock. Steps within `CLOCK_SETTLING` of the last log line are not logged.
    fn tell(&mut self, by_millis: i64, now: Span) {
        if !is_recent(self.logged, now) {
            self.logged = Some(now);
            tracing::warn!(
                by_millis,
                "the clock of the registry's server was set: jobs wait, and no records are deleted by age, \
                 until the clock has been steady for a minute; synchronise the time of the PostgreSQL or \
                 Redis server"
            );
        }
    }
}

fn is_recent(then: Option<Span>, now: Span) -> bool {
    then.is_some_and(|then| now.as_millis().saturating_sub(then.as_millis()) < CLOCK_SETTLING.as_millis())
}

#[cfg(test)]
mod tests;
