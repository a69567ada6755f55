//! Extends the epoch lease while the ledger is unreachable for every node, and lets the lease lapse
//! otherwise.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{EpochLease, Membership};
use crate::error::Error;
use crate::worker::{Progress, Worker};

/// The interval between two entries of a node on the roll: four entries fit into a lease.
const ROLL_INTERVAL: Duration = Duration::from_millis(250);

/// Writes this node's entry on the roll. While the ledger answers, the entry says that the ledger is
/// reachable.
pub(crate) struct Roll {
    pub(crate) lease: Arc<EpochLease>,
    pub(crate) membership: Arc<Membership>,
}

#[async_trait]
impl Worker for Roll {
    type Error = Error;

    fn name(&self) -> &'static str {
        "roll"
    }

    fn rest(&self) -> Duration {
        ROLL_INTERVAL
    }

    async fn activate(&self) -> Result<Progress, Error> {
        let reaches_ledger = !self.lease.misses_ledger();
        let unreached_since = self.membership.ledger_unreached_since(reaches_ledger).await;
        if let Some(since) = unreached_since.filter(|_| !reaches_ledger) {
            self.lease.vouch(since);
        }
        if self.lease.lapse_if_over() {
            tracing::error!(
                "this node has lost the ledger and cannot tell that every other node has: it answers 503 until it \
                 reaches the ledger; check its way to PostgreSQL"
            );
        }
        Ok(Progress::Idle)
    }
}
