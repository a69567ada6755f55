//! Step 5 of a rebuild: replays the unacknowledged journal of the epoch that served last into the ledger, before the
//! bucket is cleared.

use std::collections::BTreeSet;

use seatkeeper_core::{Event, PoolId, PoolKind};
use seatkeeper_ledger::Error as LedgerError;
use seatkeeper_ledger::buckets::Unreplayed;
use seatkeeper_registry::Rebuild;

use super::rebuilder::{Raised, Rebuilder};
use super::{Route, route_for};
use crate::error::Error;

/// The number of events read and applied at a time.
const BATCH_EVENTS_MAX: usize = 1_000;

impl Rebuilder {
    /// Applies the events of the epoch that served last in a bucket's journal. Each pool is replayed as far as its
    /// events continue the ledger's record.
    pub(super) async fn replay_old_epoch(&self, source: &dyn Rebuild, raised: &Raised) -> Result<(), Error> {
        let &Raised { bucket, epoch, unreplayed, .. } = raised;
        let (mut after, mut dropped, mut void) = (None, BTreeSet::new(), 0);
        loop {
            let entries = source.rebuild_journal(bucket, epoch, after, BATCH_EVENTS_MAX).await?;
            let Some(last) = entries.last() else { break };
            after = Some(last.receipt);
            let of_last_epoch =
                entries.into_iter().map(|entry| entry.event).filter(|event| event.epoch == unreplayed.epoch);
            let (valid, others): (Vec<_>, Vec<_>) =
                of_last_epoch.partition(|event| is_valid(unreplayed, event.pool.kind));
            void += others.len();
            let events = valid.into_iter().map(|event| Event { epoch, ..event }).collect();
            self.apply(events, &mut dropped).await?;
        }
        if !dropped.is_empty() {
            tracing::warn!(
                bucket = bucket.number(),
                pools = dropped.len(),
                "unrecorded events of some pools contradict the ledger and are dropped; the ledger's record stands"
            );
        }
        if void > 0 {
            tracing::warn!(
                bucket = bucket.number(),
                events = void,
                "unrecorded events are dropped: a fallback broke off before their replay, and nodes have renewed \
                 sessions by the ledger alone since; only answers with `durability = journal` rested on the events"
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

/// Returns whether events of pools of this kind still hold. In a fallback mode nodes renew some sessions by the ledger
/// alone as soon as they know the mode, even if the rebuild into the mode broke off: an older end would be a false end.
fn is_valid(unreplayed: Unreplayed, kind: PoolKind) -> bool {
    let is_by_ledger_alone = |mode| matches!(route_for(kind, mode), Route::NodeLocal | Route::Nowhere);
    !unreplayed.lower_mode.is_some_and(is_by_ledger_alone)
}

#[cfg(test)]
mod tests;
