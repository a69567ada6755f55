//! The schedule of all jobs, which the runners of a node read together.
//!
//! A runner looks once a second, and nearly always finds nothing due. One reading of the schedule serves all runners, and the
//! registry's clock is read every few seconds. The board is a hint: before a runner takes a job, the runner reads the clock
//! and the ledger decides.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::jobs::JobName;
use tokio::sync::Mutex;

use super::clock::JobTime;
use super::{Job, JobClock};
use crate::error::Error;

/// For how long readings serve.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifetimes {
    pub(super) schedule: Duration,
    pub(super) clock: Duration,
}

impl Lifetimes {
    /// For a registry in this process, whose clock costs nothing to read.
    pub(super) const OWN_CLOCK: Self = Self { clock: Duration::ZERO, ..Self::SERVERS_CLOCK };

    /// For a registry whose clock is a server's. The schedule serves for less than a runner's pause, the clock for less than
    /// the shortest interval of a job.
    pub(super) const SERVERS_CLOCK: Self =
        Self { schedule: Duration::from_millis(900), clock: Duration::from_secs(4) };
}

/// The schedule of all jobs as it was read last.
pub(super) struct Board {
    clock: Arc<JobClock>,
    ledger: Ledger,
    lifetimes: Lifetimes,
    /// Set when the schedule has changed: the next runner reads it.
    is_outdated: AtomicBool,
    // Held during a reading: concurrent runners share the result.
    read: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    schedule: Option<(Instant, BTreeMap<JobName, RegistryTime>)>,
    time: Option<(Instant, JobTime)>,
}

impl Board {
    /// A board that nobody has read yet.
    pub(super) fn new(clock: Arc<JobClock>, ledger: Ledger, lifetimes: Lifetimes) -> Self {
        Self { clock, ledger, lifetimes, is_outdated: AtomicBool::new(false), read: Mutex::default() }
    }

    /// Returns whether a job can probably be taken now: the job is due, or the lock of its run is stale, and the clock is
    /// steady enough for the job.
    pub(super) async fn may_be_due(&self, job: &impl Job) -> Result<bool, Error> {
        let mut read = self.read.lock().await;
        let time = self.time(&mut read).await?;
        if !time.allows(job) {
            return Ok(false);
        }
        let schedule = self.schedule(&mut read).await?;
        Ok(schedule.get(&job.name()).is_some_and(|due| *due <= time.now))
    }

    /// Notes that the schedule has changed.
    pub(super) fn outdate(&self) {
        self.is_outdated.store(true, Ordering::SeqCst);
    }

    /// The registry's time: read, or the time that was read and the time since then.
    async fn time(&self, read: &mut Read) -> Result<JobTime, Error> {
        if let Some((then, time)) = read.time
            && then.elapsed() < self.lifetimes.clock
        {
            let since = Span::from_millis(then.elapsed().as_millis() as u64);
            return Ok(JobTime { now: time.now + since, ..time });
        }
        let time = self.clock.read().await?;
        read.time = Some((Instant::now(), time));
        Ok(time)
    }

    async fn schedule<'r>(&self, read: &'r mut Read) -> Result<&'r BTreeMap<JobName, RegistryTime>, Error> {
        let is_outdated = self.is_outdated.swap(false, Ordering::SeqCst);
        let is_fresh = |(then, _): &(Instant, _)| !is_outdated && then.elapsed() < self.lifetimes.schedule;
        let schedule = match read.schedule.take().filter(is_fresh) {
            Some(schedule) => schedule,
            None => (Instant::now(), self.ledger.jobs_due().await.map_err(Error::Ledger)?),
        };
        Ok(&read.schedule.insert(schedule).1)
    }
}

#[cfg(test)]
mod tests;
