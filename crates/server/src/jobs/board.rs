//! A cache of the job schedule, shared by all runners of a node.
//!
//! A runner asks once a second, and a job is rarely due. So one read of the schedule serves all runners, and
//! a server's clock is read only every few seconds. The board is a hint. Before a runner takes a job, the
//! runner reads the clock, and the ledger decides.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use seatkeeper_core::Span;
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::jobs::{JobDue, JobName};
use tokio::sync::Mutex;

use super::clock::JobTime;
use super::{Job, JobClock};
use crate::error::Error;

/// The lifetimes of cached reads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lifetimes {
    pub(super) schedule: Duration,
    pub(super) clock: Duration,
}

impl Lifetimes {
    /// Lifetimes for a registry in this process, whose clock costs nothing to read.
    pub(super) const OWN_CLOCK: Self = Self { clock: Duration::ZERO, ..Self::SERVERS_CLOCK };

    /// Lifetimes for a registry with the clock of a server. The schedule's lifetime is shorter than a
    /// runner's pause, the clock's shorter than the shortest interval of a job.
    pub(super) const SERVERS_CLOCK: Self =
        Self { schedule: Duration::from_millis(900), clock: Duration::from_secs(4) };
}

/// The cached schedule of all jobs, with the cached time.
pub(super) struct Board {
    clock: Arc<JobClock>,
    ledger: Ledger,
    lifetimes: Lifetimes,
    /// Set by [`Board::outdate`]: the next runner reads the schedule again.
    is_outdated: AtomicBool,
    // Held during a read, so that concurrent runners share the result.
    read: Mutex<Read>,
}

#[derive(Default)]
struct Read {
    schedule: Option<(Instant, BTreeMap<JobName, JobDue>)>,
    time: Option<(Instant, JobTime)>,
}

impl Board {
    /// Creates an empty board.
    pub(super) fn new(clock: Arc<JobClock>, ledger: Ledger, lifetimes: Lifetimes) -> Self {
        Self { clock, ledger, lifetimes, is_outdated: AtomicBool::new(false), read: Mutex::default() }
    }

    /// Returns whether a job can probably be taken now: the clock is steady enough for the job, and the job is due or
    /// its run's lock is stale.
    pub(super) async fn may_be_due(&self, job: &impl Job) -> Result<bool, Error> {
        let mut read = self.read.lock().await;
        let time = self.time(&mut read).await?;
        if !time.allows(job) {
            return Ok(false);
        }
        let schedule = self.schedule(&mut read).await?;
        Ok(schedule.get(&job.name()).is_some_and(|due| due.has_come(time.now)))
    }

    /// Invalidates the cached schedule.
    pub(super) fn outdate(&self) {
        self.is_outdated.store(true, Ordering::SeqCst);
    }

    /// Returns the registry's time. A cached reading is extrapolated by the monotonic time since the read.
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

    async fn schedule<'r>(&self, read: &'r mut Read) -> Result<&'r BTreeMap<JobName, JobDue>, Error> {
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
