//! Metrics of job runs: durations, outcomes and reclaimed locks.

use seatkeeper_core::named_enum;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use seatkeeper_ledger::jobs::JobName;

use super::{LockMetrics, Timing};

/// Metrics of job runs on this node.
#[derive(Clone, Debug)]
pub(crate) struct JobMetrics {
    durations: Family<OfJob, Timing, fn() -> Timing>,
    runs: Family<Ran, Counter>,
    reclaimed: Counter,
    locks: LockMetrics,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfJob {
    job: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ran {
    job: &'static str,
    outcome: &'static str,
}

named_enum! {
    /// The outcome of a run.
    pub(crate) enum RunOutcome {
        /// The work is done.
        Succeeded = "succeeded",
        /// The work failed. The job is retried.
        Failed = "failed",
        /// The server stopped before the work was done.
        Stopped = "stopped",
        /// Another run has the lock.
        Lost = "lost",
    }
}

impl JobMetrics {
    /// Creates the metrics. Contended locks are counted in `locks`.
    pub(super) fn new(locks: LockMetrics) -> Self {
        let runs = Family::<Ran, Counter>::default();
        for job in JobName::ALL.map(JobName::as_str) {
            for outcome in RunOutcome::ALL.map(RunOutcome::as_str) {
                drop(runs.get_or_create(&Ran { job, outcome }));
            }
        }
        let durations = Family::new_with_constructor(Timing::of_work as fn() -> Timing);
        Self { durations, runs, reclaimed: Counter::default(), locks }
    }

    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("job_duration_seconds", "How long runs of jobs took", self.durations.clone());
        registry.register("job_runs", "Runs of jobs that ended, by the outcome", self.runs.clone());
        registry.register(
            "job_stale_locks_reclaimed",
            "Locks of jobs that were taken over from a worker that was presumed dead",
            self.reclaimed.clone(),
        );
    }

    /// Counts a run that ended.
    pub(crate) fn ran(&self, job: JobName, outcome: RunOutcome, took: Duration) {
        let job = job.as_str();
        self.durations.get_or_create(&OfJob { job }).observe(took);
        self.runs.get_or_create(&Ran { job, outcome: outcome.as_str() }).inc();
        if outcome == RunOutcome::Lost {
            self.locks.contended(1);
        }
    }

    /// Counts a stale lock that was taken over.
    pub(crate) fn reclaimed(&self) {
        self.reclaimed.inc();
    }
}

#[cfg(test)]
impl Default for JobMetrics {
    fn default() -> Self {
        Self::new(LockMetrics::default())
    }
}
