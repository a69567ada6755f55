//! The job that records usage windows.
//!
//! A window is recorded only once the ledger has every event before the end of the window.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::{Bucket, RegistryTime, Span};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::jobs::{Fence, JobName};

use crate::error::Error;
use crate::jobs::{Job, JobClock, TrustedClock};
use crate::metrics::{Emitted, UsageMetrics};
use seatkeeper_engine::{Backend, Overtaken};

/// Longest wait for the ledger to have a bucket's events. A longer wait is a failed run, so that an alert fires.
const COMMIT_MAX: Duration = Duration::from_secs(60);

pub(crate) struct Emission {
    pub(crate) clock: Arc<JobClock>,
    /// Bounds the ends of windows: the sink cannot be told that a window was wrong.
    pub(crate) trusted: Arc<TrustedClock>,
    pub(crate) backend: Backend,
    pub(crate) ledger: Ledger,
    pub(crate) interval: Span,
    pub(crate) batch_records: usize,
    pub(crate) metrics: UsageMetrics,
}

#[async_trait]
impl Job for Emission {
    fn name(&self) -> JobName {
        JobName::UsageEmission
    }

    fn interval(&self) -> Span {
        self.interval
    }

    async fn run(&self, fence: &Fence) -> Result<(), Error> {
        let emitted = self.emit(fence).await;
        if emitted.is_err() {
            self.metrics.came(Emitted::Failed);
        }
        emitted
    }
}

impl Emission {
    async fn emit(&self, fence: &Fence) -> Result<(), Error> {
        let (complete, trusted) = (self.caught_up().await?, self.trusted.read().await?);
        let until = complete.min(trusted);
        // Trusted time grows with each repetition of the failed run, and short windows would multiply the records.
        if trusted < complete && !self.is_interval_over(until).await? {
            return Err(Error::TimeUnconfirmed);
        }
        let emit = || self.ledger.emit_usage(until, self.batch_records, fence);
        while let Some(emitted) = emit().await.map_err(Error::Ledger)? {
            self.metrics.came(Emitted::Recorded);
            tracing::info!(
                records = emitted.records,
                batches = emitted.batches,
                usage = %emitted.usage,
                seconds = emitted.window.ends().since(emitted.window.starts()).as_secs_floor(),
                "usage is on record"
            );
            let now = self.clock.read_to_schedule().await?;
            self.ledger.run_job_now(JobName::UsageDelivery, now).await.map_err(Error::Ledger)?;
        }
        // Usage after trusted time waits for an operator, so the alerts on failed and overdue runs have to fire.
        if trusted < complete { Err(Error::TimeUnconfirmed) } else { Ok(()) }
    }

    /// Returns `true` if the last window ended an interval before `until`, or there is none.
    async fn is_interval_over(&self, until: RegistryTime) -> Result<bool, Error> {
        let metered = self.ledger.usage_metered_until().await.map_err(Error::Ledger)?;
        Ok(metered.is_none_or(|metered| metered + self.interval <= until))
    }

    /// Returns a time up to which the ledger is complete: no event before that time can still be recorded.
    async fn caught_up(&self) -> Result<RegistryTime, Error> {
        // The time comes first: an event that enters a journal after the read of its end happens at `until` or
        // later.
        let now = self.clock.read_to_schedule().await?;
        let until = now.min(self.backend.registry.low_watermark().await?);
        for bucket in Bucket::all() {
            let end = self.backend.registry.journal_end(bucket).await?;
            let reached = tokio::time::timeout(COMMIT_MAX, self.backend.commits.reached(end)).await;
            let reached = reached.map_err(|_| Error::NotDurable)?;
            reached.map_err(|Overtaken| Error::NotDurable)?;
        }
        Ok(until)
    }
}

#[cfg(test)]
pub(super) mod tests;
