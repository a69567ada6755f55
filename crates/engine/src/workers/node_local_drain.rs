//! Brings what this node decides alone into the ledger: who is admitted waits for it.

use async_trait::async_trait;
use futures_util::future::try_join_all;
use seatkeeper_core::{Change, Event};
use seatkeeper_ledger::Ledger;
use seatkeeper_registry::Share;
use std::time::Duration;
use uuid::Uuid;

use super::drain::split;
use crate::backend::Backend;
use crate::error::Error;
use crate::worker::{Progress, Worker};

/// Events in one commit.
const BATCH_EVENTS_MAX: usize = 1_000;

/// How long it rests if nothing wakes it: a journal's wake-up is never lost.
const REST: Duration = Duration::from_secs(1);

pub(crate) struct NodeLocalDrain {
    pub(crate) backend: Backend,
    pub(crate) ledger: Ledger,
    /// This node, as the ledger knows it.
    pub(crate) node: Uuid,
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
        let (receipts, events) = split(registry.journal_read(Share::All, BATCH_EVENTS_MAX).await?.entries);
        if events.is_empty() {
            return Ok(Progress::Idle);
        }
        self.ledger.record_alone(self.node, &events).await?;
        let (admitted, ended) = (count(&events, is_admission), count(&events, is_end));
        self.backend.count_recorded(admitted, ended);
        if admitted > 0 {
            tracing::warn!(admitted, "admitted by this node alone, as the registry is out of reach");
        }
        for receipt in &receipts {
            commits.advance(*receipt);
        }
        try_join_all(receipts.into_iter().map(|receipt| registry.journal_acknowledge(receipt))).await?;
        Ok(Progress::More)
    }

    async fn woken(&self) {
        self.backend.registry.journal_stirred(Share::All).await;
    }
}

fn count(events: &[Event], is_it: fn(&Change) -> bool) -> usize {
    events.iter().filter(|event| is_it(&event.change)).count()
}

fn is_admission(change: &Change) -> bool {
    matches!(change, Change::Admitted { .. })
}

fn is_end(change: &Change) -> bool {
    matches!(change, Change::Ended { .. })
}
