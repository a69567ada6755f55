//! Step 5 of a rebuild: replays the old epoch's unacknowledged journal into the ledger before the bucket is
//! cleared.

use std::collections::BTreeSet;

use seatkeeper_core::{Event, PoolId};
use seatkeeper_ledger::Error as LedgerError;
use seatkeeper_registry::Rebuild;

use super::rebuilder::{Raised, Rebuilder};
use crate::error::Error;

/// The number of events read and applied at a time.
const BATCH_EVENTS_MAX: usize = 1_000;

impl Rebuilder {
    /// Applies the events of the last epoch in a bucket's journal. Each pool is replayed as far as its events
    /// continue the ledger's record.
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
                "unrecorded events of some pools contradict the ledger and are dropped; the ledger's record stands"
            );
        }
        Ok(())
    }

    /// Applies the events of pools outside `dropped`, and adds every pool that contradicts the ledger to
    /// `dropped`.
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
