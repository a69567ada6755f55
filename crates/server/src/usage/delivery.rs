//! The job that delivers usage to the sink.
//!
//! Deliveries are at least once: a batch keeps its id as the idempotency key over all attempts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use async_trait::async_trait;
use futures_util::{Stream, TryStreamExt, future, stream};
use seatkeeper_core::{RegistryTime, Span};
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::jobs::{Fence, JobName};
use seatkeeper_ledger::usage::{DueBatch, Settlement};
use seatkeeper_registry::Registry;

use super::sink::Sink;
use super::verdict::settlement;
use crate::error::Error;
use crate::jobs::{Job, USAGE_DELIVERY_INTERVAL};
use crate::metrics::{Emitted, UsageMetrics};

/// Maximum of concurrent deliveries.
const BATCHES_AT_ONCE_MAX: usize = 4;

/// Attempts in a row to be retried after which a run ends. The next run begins with untried batches: a sink without
/// service costs the ledger few writes, also with many batches.
const RETRIED_IN_A_ROW_MAX: u64 = 64;

pub(crate) struct Delivery {
    pub(crate) registry: Arc<dyn Registry>,
    pub(crate) ledger: Ledger,
    pub(crate) sink: Box<dyn Sink>,
    pub(crate) duplicate_statuses: Vec<u16>,
    pub(crate) metrics: UsageMetrics,
}

#[async_trait]
impl Job for Delivery {
    fn name(&self) -> JobName {
        JobName::UsageDelivery
    }

    fn interval(&self) -> Span {
        USAGE_DELIVERY_INTERVAL
    }

    /// Tries each due batch once, until the sink fails too often in a row.
    async fn run(&self, fence: &Fence) -> Result<(), Error> {
        let now = self.registry.now().await?;
        self.ledger.recall_usage(now, fence).await.map_err(Error::Ledger)?;
        let retried_in_a_row = AtomicU64::new(0);
        let tally = self
            .due(now)
            .try_take_while(|_| future::ok(retried_in_a_row.load(Relaxed) < RETRIED_IN_A_ROW_MAX))
            .map_ok(|batch| self.deliver(batch, fence))
            .try_buffer_unordered(BATCHES_AT_ONCE_MAX)
            .try_fold(Tally::default(), |tally, settled| {
                let is_retried = matches!(settled, Settlement::Retry { .. });
                retried_in_a_row
                    .store(if is_retried { retried_in_a_row.load(Relaxed) + 1 } else { 0 }, Relaxed);
                future::ok(tally.with(settled))
            })
            .await?;
        tally.log();
        Ok(())
    }
}

impl Delivery {
    /// Streams all batches due at `now`. A page of a few batches is in memory at a time.
    fn due(&self, now: RegistryTime) -> impl Stream<Item = Result<DueBatch, Error>> + Send + '_ {
        let page = move |after| async move {
            let max = BATCHES_AT_ONCE_MAX as u32;
            let page = self.ledger.due_usage(now, after, max).await.map_err(Error::Ledger)?;
            let last = page.last().map(|batch| (batch.due, batch.id));
            Ok::<_, Error>(last.map(|last| (stream::iter(page.into_iter().map(Ok)), Some(last))))
        };
        stream::try_unfold(None, page).try_flatten()
    }

    async fn deliver(&self, batch: DueBatch, fence: &Fence) -> Result<Settlement, Error> {
        let reply = self.sink.send(&batch).await;
        let now = self.registry.now().await?;
        let settled = settlement(reply, &batch, &self.duplicate_statuses, now, rand::random());
        tracing::debug!(batch = %batch.id, records = batch.records.len(), ?settled, "usage batch sent");
        let settled = self.ledger.settle_usage(batch.id, settled, fence).await.map_err(Error::Ledger)?;
        self.metrics.came(Emitted::from(&settled));
        Ok(settled)
    }
}

/// The totals of a run: a single log line, even for many batches with the same failure.
#[derive(Default)]
struct Tally {
    delivered: u64,
    failed: u64,
    dead: u64,
    split: u64,
    refused: u64,
    last_status: Option<u16>,
    last_error: Option<String>,
}

impl Tally {
    fn with(self, settled: Settlement) -> Self {
        match settled {
            Settlement::Delivered { .. } => Self { delivered: self.delivered + 1, ..self },
            Settlement::Retry { status, error, .. } => {
                Self { failed: self.failed + 1, last_status: status, last_error: Some(error), ..self }
            }
            Settlement::Split { .. } => Self { split: self.split + 1, ..self },
            Settlement::Refused { status, error, .. } => {
                Self { refused: self.refused + 1, last_status: Some(status), last_error: Some(error), ..self }
            }
            Settlement::Dead { status, error, .. } => {
                Self { dead: self.dead + 1, last_status: Some(status), last_error: Some(error), ..self }
            }
        }
    }

    fn log(&self) {
        let Self { delivered, failed, dead, split, refused, last_status, last_error } = self;
        if *split > 0 {
            tracing::warn!(
                split,
                "the sink refused batches as too large (413); each goes on as two batches with half of the records; \
                 set `usage.batch_records` to fewer records"
            );
        }
        if failed + dead + refused > 0 {
            tracing::warn!(
                delivered,
                failed,
                dead,
                refused,
                status = last_status,
                error = last_error.as_deref(),
                "the sink did not accept all usage; failed batches are retried, refused ones go on as two batches with \
                 half of the records, dead ones wait for an operator"
            );
        }
    }
}

#[cfg(test)]
mod tests;
