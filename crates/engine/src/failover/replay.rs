//! Brings what a registry knew and the ledger does not into the ledger, before it is forgotten.

use std::collections::BTreeSet;

use seatkeeper_core::{Event, PoolId};
use seatkeeper_ledger::Error as LedgerError;
use seatkeeper_registry::Rebuild;

use super::rebuilder::{Raised, Rebuilder};
use crate::error::Error;

/// Events that are read and applied at a time.
const BATCH_EVENTS_MAX: usize = 1_000;

impl Rebuilder {
    /// Applies what waits in a bucket's journal and is of the epoch before this one: of each pool as far as it
    /// continues what is on record.
    pub(super) async fn replay_old_epoch(&self, source: &dyn Rebuild, raised: &Raised) -> Result<(), Error> {
        let &Raised { bucket, epoch, last_epoch, .. } = raised;
        let (mut after, mut dropped) = (None, BTreeSet::new());
        loop {
            let entries = source.rebuild_journal(bucket, epoch, after, BATCH_EVENTS_MAX).await?;
            let Some(last) = entries.last() else { break };
            after = Some(last.receipt);
            let of_last_epoch =
                entries.into_iter().map(|entry| entry.event).filter(|event| event.epoch == last_epoch);
            let events = of_last_epoch.map(|event| Event { epoch, ..event }).collect();
            self.apply(events, &mut dropped).await?;
        }
        if !dropped.is_empty() {
            tracing::warn!(
                bucket = bucket.number(),
                pools = dropped.len(),
                "what the registry knew of some pools contradicts the record, and is dropped"
            );
        }
        Ok(())
    }

    /// Applies events, but for those of pools in `dropped`, to which it adds those that contradict the record.
    async fn apply(&self, mut events: Vec<Event>, dropped: &mut BTreeSet<PoolId>) -> Result<(), Error> {
        loop {
            events.retain(|event| !dropped.contains(&event.pool));
            match self.ledger.apply(&events).await {
                Err(LedgerError::Contradiction { pool, .. }) => dropped.insert(*pool),
                applied => {
                    self.metrics.changes.recorded(&events, &applied?);
                    return Ok(());
                }
            };
        }
    }
}
