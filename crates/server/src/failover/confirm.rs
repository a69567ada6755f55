//! Reads which epoch each bucket is in, and tells the others that this node lives.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use seatkeeper_core::Bucket;
use seatkeeper_ledger::{BucketRow, Ledger, NodeRow};
use seatkeeper_registry::Receipt;

use super::{Bearings, POLL_INTERVAL, Presence};
use crate::engine::Commits;
use crate::error::Error;
use crate::workers::{Left, Worker};

/// How long the ledger may take. Past it, it counts as out of reach.
const READING_MAX: Duration = Duration::from_secs(1);

pub(crate) struct Confirm {
    pub(crate) ledger: Ledger,
    pub(crate) bearings: Arc<Bearings>,
    /// Those of the registries that are rebuilt.
    pub(crate) commits: Vec<Arc<Commits>>,
    pub(crate) presence: Arc<Presence>,
}

#[async_trait]
impl Worker for Confirm {
    fn name(&self) -> &'static str {
        "confirm"
    }

    fn rest(&self) -> Duration {
        POLL_INTERVAL
    }

    async fn activate(&self) -> Result<Left, Error> {
        let began = Instant::now();
        match tokio::time::timeout(READING_MAX, self.read()).await {
            Ok(Ok((began, nodes, rows))) => self.note(began, nodes, rows),
            Ok(Err(error)) => {
                if self.bearings.not_confirmed(began) {
                    let error = Error::Ledger(error);
                    let causes = error.with_causes();
                    tracing::error!(%causes, "the ledger is out of reach: what needs no record goes on");
                }
            }
            Err(_) => {
                if self.bearings.not_confirmed(began) {
                    tracing::error!("the ledger does not answer: what needs no record goes on");
                }
            }
        }
        Ok(Left::Nothing)
    }

    async fn woken(&self) {
        self.bearings.reading_wanted().await;
    }
}

impl Confirm {
    /// The nodes first: one that goes by an epoch must be among the nodes that whoever raises it waits for.
    async fn read(&self) -> Result<(Instant, Vec<NodeRow>, Vec<BucketRow>), seatkeeper_ledger::Error> {
        let nodes = self.presence.seen().await?;
        let began = Instant::now();
        Ok((began, nodes, self.ledger.buckets().await?))
    }

    fn note(&self, began: Instant, nodes: Vec<NodeRow>, rows: Vec<BucketRow>) {
        if !self.bearings.reaches_ledger() {
            tracing::info!("the ledger is back");
        }
        let known = self.bearings.rows();
        let is_new = |row: &&BucketRow| {
            let known = known.get(usize::from(row.bucket.number()));
            known.is_none_or(|known| known.epoch != row.epoch)
        };
        let raised: Vec<(Bucket, u64)> =
            rows.iter().filter(is_new).map(|row| (row.bucket, row.epoch)).collect();
        self.bearings.confirm(began, nodes, rows);
        for (bucket, epoch) in raised {
            // Whoever waits in an older epoch waits in vain.
            let begun = Receipt { bucket, epoch, position: 0 };
            for commits in &self.commits {
                commits.advance(begun);
            }
        }
    }
}
