//! The job that records usage windows.
//!
//! A window is recorded only once the ledger has every event before the end of the window.

use std::sync::Arc;

use async_trait::async_trait;
use seatkeeper_core::{Bucket, RegistryTime, Span};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::jobs::{Fence, JobName};

use crate::error::Error;
use crate::jobs::{Job, JobClock};
use crate::metrics::{Emitted, UsageMetrics};
use seatkeeper_engine::{Backend, Overtaken};

pub(crate) struct Emission {
    pub(crate) clock: Arc<JobClock>,
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
        let until = self.caught_up().await?;
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
        Ok(())
    }

    /// Returns a time up to which the ledger is complete: no event before that time can still be recorded.
    async fn caught_up(&self) -> Result<RegistryTime, Error> {
        // The time comes first: an event that enters a journal after the read of its end happens at `now` or
        // later.
        let now = self.clock.read_to_schedule().await?;
        for bucket in Bucket::all() {
            let end = self.backend.registry.journal_end(bucket).await?;
            self.backend.commits.reached(end).await.map_err(|Overtaken| Error::NotDurable)?;
        }
        Ok(now)
    }
}
