//! Brings the journal into the ledger: many events a commit, whoever waits for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use seatkeeper_core::Event;
use seatkeeper_ledger::Ledger;
use seatkeeper_registry::{JournalEntry, Receipt, Registry};

use super::driver::{Left, Worker};
use crate::engine::{Commits, Endings};
use crate::error::Error;

/// Events in one commit. Only a ledger that is behind has so many at once, and it catches up the faster the
/// more there are: pages that many of them touch are written once. It is a fraction of a second's work, for
/// those behind them wait.
const DRAIN_BATCH_EVENTS_MAX: usize = 4_096;

/// How long the drainer rests if nothing wakes it: a journal's wake-up is never lost, so this is a
/// backstop only.
const REST: Duration = Duration::from_secs(1);

pub(crate) struct Drain {
    pub(crate) registry: Arc<dyn Registry>,
    pub(crate) ledger: Ledger,
    pub(crate) commits: Arc<Commits>,
    pub(crate) endings: Arc<Endings>,
}

#[async_trait]
impl Worker for Drain {
    fn name(&self) -> &'static str {
        "drain"
    }

    fn rest(&self) -> Duration {
        REST
    }

    fn must_finish(&self) -> bool {
        true
    }

    async fn activate(&self) -> Result<Left, Error> {
        let entries = self.registry.journal_read(DRAIN_BATCH_EVENTS_MAX).await?;
        if entries.is_empty() {
            return Ok(Left::Nothing);
        }
        let (receipts, events) = split(entries);
        let applied = self.ledger.apply(&events).await;
        self.commits.tried(applied.is_err());
        applied.map_err(Error::Ledger)?;
        for receipt in receipts {
            self.registry.journal_acknowledge(receipt).await?;
            self.commits.advance(receipt);
        }
        self.endings.tell(&events);
        Ok(Left::More)
    }

    async fn woken(&self) {
        self.registry.journal_stirred().await;
    }
}

/// The events, and for each bucket how far they go.
fn split(entries: Vec<JournalEntry>) -> (Vec<Receipt>, Vec<Event>) {
    let mut furthest = BTreeMap::new();
    let mut events = Vec::with_capacity(entries.len());
    for entry in entries {
        furthest.insert(entry.receipt.bucket, entry.receipt);
        events.push(entry.event);
    }
    (furthest.into_values().collect(), events)
}
