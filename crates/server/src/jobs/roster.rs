//! The roster of jobs that this server runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use seatkeeper_core::RegistryTime;
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::jobs::JobName;
use tokio::sync::Notify;
use uuid::Uuid;

use super::board::Lifetimes;
use super::{Board, Job, JobClock, Pace, Runner, TrustedClock};
use crate::metrics::JobMetrics;
use seatkeeper_engine::WorkerSet;

/// The jobs that this server runs, with a wake-up for each runner.
pub(crate) struct Roster {
    clock: Arc<JobClock>,
    trusted: Arc<TrustedClock>,
    board: Arc<Board>,
    ledger: Ledger,
    /// The name of this server in the locks of jobs.
    worker: Arc<str>,
    bells: BTreeMap<JobName, Arc<Notify>>,
    metrics: JobMetrics,
}

impl Roster {
    pub(crate) fn new(
        clock: Arc<JobClock>,
        trusted: Arc<TrustedClock>,
        ledger: Ledger,
        metrics: JobMetrics,
    ) -> Self {
        let worker = Uuid::new_v4().to_string().into();
        let lifetimes = if clock.is_process_own() { Lifetimes::OWN_CLOCK } else { Lifetimes::SERVERS_CLOCK };
        let board = Arc::new(Board::new(Arc::clone(&clock), ledger.clone(), lifetimes));
        Self { clock, trusted, board, ledger, worker, bells: BTreeMap::new(), metrics }
    }

    /// Starts a job's runner as a worker of `workers`. A job new to the ledger is due at `now`.
    pub(crate) async fn start(
        &mut self,
        job: impl Job,
        workers: &WorkerSet,
        now: RegistryTime,
    ) -> Result<(), seatkeeper_ledger::Error> {
        self.ledger.ensure_job(job.name(), job.interval(), now).await?;
        let bell = Arc::clone(self.bells.entry(job.name()).or_default());
        workers.start(Runner {
            job,
            clock: Arc::clone(&self.clock),
            board: Arc::clone(&self.board),
            ledger: self.ledger.clone(),
            worker: Arc::clone(&self.worker),
            bell,
            stop: workers.stopping(),
            pace: Pace::USUAL,
            metrics: self.metrics.clone(),
        });
        Ok(())
    }

    /// Returns the clock of all jobs.
    pub(crate) fn clock(&self) -> Arc<JobClock> {
        Arc::clone(&self.clock)
    }

    /// Returns the clock of irreversible work.
    pub(crate) fn trusted_clock(&self) -> Arc<TrustedClock> {
        Arc::clone(&self.trusted)
    }

    /// Returns whether this server runs the job.
    pub(crate) fn has(&self, name: JobName) -> bool {
        self.bells.contains_key(&name)
    }

    /// Invalidates the cached schedule and wakes the job's runner. The runner then checks at once if the job
    /// is due.
    pub(crate) fn wake(&self, name: JobName) {
        if let Some(bell) = self.bells.get(&name) {
            self.board.outdate();
            bell.notify_one();
        }
    }
}
