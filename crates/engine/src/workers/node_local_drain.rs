//! Commits the decisions of this node alone to the ledger. Every admission waits for its commit.

use async_trait::async_trait;
use futures_util::future::try_join_all;
use seatkeeper_core::Change;
use seatkeeper_ledger::Ledger;
use seatkeeper_ledger::node_local::LoneNode;
use std::time::Duration;

use super::drain::split;
use crate::backend::Backend;
use crate::error::Error;
use crate::worker::{Progress, Worker};

/// The most events in one commit.
const BATCH_EVENTS_MAX: usize = 1_000;

/// The rest of an idle drain. A journal's wake-up is never lost, so the timer is only a backstop.
const REST: Duration = Duration::from_secs(1);

/// The worker that commits the events of the node-local registry.
pub(crate) struct NodeLocalDrain {
    pub(crate) backend: Backend,
    pub(crate) ledger: Ledger,
    /// The node, as the records name the node.
    pub(crate) node: LoneNode,
}

#[async_trait]
impl Worker for NodeLocalDrain {
    type Error = Error;

    fn name(&self) -> &'static str {
        "node_local_drain"
    }

    fn rest(&self) -> Duration {
        REST
    }

    fn must_finish(&self) -> bool {
        true
    }

    async fn activate(&self) -> Result<Progress, Error> {
        let Backend { registry, commits, .. } = &self.backend;
        let (receipts, events) = split(registry.journal_read(BATCH_EVENTS_MAX).await?.entries);
        if events.is_empty() {
            return Ok(Progress::Idle);
        }
        self.ledger.record_node_local(self.node, &events).await?;
        let admitted = events.iter().filter(|event| matches!(event.change, Change::Admitted { .. })).count();
        let ended = events.iter().filter(|event| matches!(event.change, Change::Ended { .. })).count();
        self.backend.count_recorded(admitted, ended);
        if admitted > 0 {
            self.warn(admitted);
        }
        for receipt in &receipts {
            commits.advance(*receipt);
        }
        try_join_all(receipts.into_iter().map(|receipt| registry.journal_acknowledge(receipt))).await?;
        Ok(Progress::More)
    }

    async fn woken(&self) {
        self.backend.registry.journal_woken().await;
    }
}

impl NodeLocalDrain {
    fn warn(&self, admitted: usize) {
        match self.node.without_home {
            true => tracing::warn!(
                admitted,
                "sessions admitted by this node alone while the home region of their subscribers is unreachable: limits do \
                 not hold across regions and nodes until the home is back; bring the region or the link back"
            ),
            false => tracing::warn!(
                admitted,
                "sessions admitted by this node alone while Redis is unreachable: limits do not hold across nodes until Redis is back"
            ),
        }
    }
}
