//! Reads which epoch each bucket is in, and tells the others that this node lives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use seatkeeper_core::Bucket;
use seatkeeper_ledger::buckets::BucketRow;
use seatkeeper_ledger::nodes::KnownNode;
use seatkeeper_registry::Receipt;
use tokio::time::error::Elapsed;

use super::{EpochLease, Membership, POLL_INTERVAL};
use crate::commits::Commits;
use crate::error::{Error, with_causes};
use crate::worker::{Progress, Worker};

/// How long the ledger may take. Past it, it counts as out of reach.
const READING_MAX: Duration = Duration::from_secs(1);

/// A reading that takes longer is one of a ledger that may be lost: the other nodes are told before this node's lease is over.
const READING_LATE: Duration = Duration::from_millis(400);

/// When the buckets were asked for, the nodes, and the rows of buckets.
type Reading = (Instant, Vec<KnownNode>, Vec<BucketRow>);

pub(crate) struct Confirm {
    pub(crate) lease: Arc<EpochLease>,
    /// Those of the registries that are rebuilt.
    pub(crate) commits: Vec<Arc<Commits>>,
    pub(crate) membership: Arc<Membership>,
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
            Ok(Ok((began, nodes, rows))) => self.note(began, nodes, rows),
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
    /// Reads within [`READING_MAX`], and tells the lease if that takes long.
    async fn read_in_time(&self) -> Result<Result<Reading, seatkeeper_ledger::Error>, Elapsed> {
        let mut reading = std::pin::pin!(self.membership.read());
        if let Ok(read) = tokio::time::timeout(READING_LATE, &mut reading).await {
            return Ok(read);
        }
        self.lease.ledger_is_late();
        tokio::time::timeout(READING_MAX.saturating_sub(READING_LATE), reading).await
    }

    fn note(&self, began: Instant, nodes: Vec<KnownNode>, rows: Vec<BucketRow>) {
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
        for (bucket, epoch) in raised {
            // Whoever waits in an older epoch waits in vain.
            let begun = Receipt { bucket, epoch, position: 0 };
            for commits in &self.commits {
                commits.advance(begun);
            }
        }
    }
}
