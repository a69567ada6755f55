//! Keeps the lease while the ledger is out of reach for every node, and lets it lapse otherwise.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use super::{EpochLease, Membership};
use crate::error::Error;
use crate::worker::{Progress, Worker};

/// Interval at which a node writes on the roll: four entries fit into a lease.
const ROLL_INTERVAL: Duration = Duration::from_millis(250);

/// Writes this node's entry on the roll, also while the ledger answers. Other nodes read that the ledger is in reach.
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
        let (reaches_ledger, named) = (!self.lease.misses_ledger(), self.lease.nodes());
        let unreached_since = self.membership.ledger_unreached_since(reaches_ledger, &named).await;
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
