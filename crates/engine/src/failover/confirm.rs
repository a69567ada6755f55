//! Reads the epoch of each bucket from the ledger and renews the lease. Each reading also writes this node's
//! row, as a sign of life for the cluster.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::Bucket;
use seatkeeper_host_clock::HostInstant;
use seatkeeper_ledger::buckets::BucketRow;
use seatkeeper_ledger::nodes::KnownNode;
use seatkeeper_registry::Receipt;
use tokio::time::error::Elapsed;

use super::{EpochLease, Membership, POLL_INTERVAL};
use crate::commits::Commits;
use crate::endings::Endings;
use crate::error::{Error, with_causes};
use crate::worker::{Progress, Worker};

/// Timeout of a reading. After it, the ledger counts as unreachable.
const READING_MAX: Duration = Duration::from_secs(1);

/// A reading slower than this may end in a lost ledger. The node then reports the ledger as late, early
/// enough for the cluster to know before the node's lease is over.
const READING_LATE: Duration = Duration::from_millis(400);

/// The instant before the buckets were read, the nodes, and the rows of the buckets.
type Reading = (HostInstant, Vec<KnownNode>, Vec<BucketRow>);

/// The worker that reads the ledger.
pub(crate) struct Confirm {
    pub(crate) lease: Arc<EpochLease>,
    /// The ledger's progress for every registry under failover.
    pub(crate) commits: Vec<Arc<Commits>>,
    pub(crate) membership: Arc<Membership>,
    pub(crate) endings: Arc<Endings>,
}

#[async_trait]
impl Worker for Confirm {
    type Error = Error;

    fn name(&self) -> &'static str {
        "confirm"
    }

    fn rest(&self) -> Duration {
        POLL_INTERVAL
    }

    async fn activate(&self) -> Result<Progress, Error> {
        match self.read_in_time().await {
            Ok(Ok((began, nodes, rows))) => {
                self.note(began, nodes.clone(), rows);
                self.forget_absent(&nodes).await;
            }
            Ok(Err(error)) => {
                if self.lease.not_confirmed() {
                    let causes = with_causes(&Error::Ledger(error));
                    tracing::error!(%causes, "ledger unreachable: only answers that need no commit are served, while no other node reaches it");
                }
            }
            Err(_) => {
                if self.lease.not_confirmed() {
                    tracing::error!(
                        "the ledger does not answer: only answers that need no commit are served, while no other node reaches it"
                    );
                }
            }
        }
        Ok(Progress::Idle)
    }

    async fn woken(&self) {
        self.lease.reading_wanted().await;
    }
}

impl Confirm {
    /// Reads within [`READING_MAX`]. Reports a late ledger to the lease after [`READING_LATE`].
    async fn read_in_time(&self) -> Result<Result<Reading, seatkeeper_ledger::Error>, Elapsed> {
        let mut reading = std::pin::pin!(self.membership.read());
        if let Ok(read) = tokio::time::timeout(READING_LATE, &mut reading).await {
            return Ok(read);
        }
        self.lease.ledger_is_late();
        tokio::time::timeout(READING_MAX.saturating_sub(READING_LATE), reading).await
    }

    /// Forgets nodes that went silent without a farewell. A failure only delays the forgetting.
    async fn forget_absent(&self, nodes: &[KnownNode]) {
        match tokio::time::timeout(READING_MAX, self.membership.forget_absent(nodes)).await {
            Ok(Ok(forgotten)) if !forgotten.is_empty() => tracing::warn!(
                nodes = forgotten.join(", "),
                "nodes went silent without a farewell: they are forgotten, and serve nothing until they reach the ledger"
            ),
            Ok(Ok(_)) | Err(_) => {}
            Ok(Err(error)) => tracing::debug!(
                error = &error as &dyn std::error::Error,
                "nodes that went silent were not forgotten"
            ),
        }
    }

    fn note(&self, began: HostInstant, nodes: Vec<KnownNode>, rows: Vec<BucketRow>) {
        if !self.lease.reaches_ledger() {
            tracing::info!("the ledger is back");
        }
        let known = self.lease.rows();
        let is_new = |row: &&BucketRow| {
            let known = known.get(usize::from(row.bucket.number()));
            known.is_none_or(|known| known.epoch != row.epoch)
        };
        let raised: Vec<(Bucket, u64)> =
            rows.iter().filter(is_new).map(|row| (row.bucket, row.epoch)).collect();
        self.lease.confirm(began, nodes, rows);
        for &(bucket, epoch) in &raised {
            // Fails the waits of older epochs.
            let begun = Receipt { bucket, epoch, position: 0 };
            for commits in &self.commits {
                commits.advance(begun);
            }
        }
        // A replay of the old epoch's journal announces no end, and a lost Redis takes announcements along.
        self.endings.tell_of_buckets(&raised.into_iter().map(|(bucket, _)| bucket).collect());
    }
}

#[cfg(test)]
mod tests;
