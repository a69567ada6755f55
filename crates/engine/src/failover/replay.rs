//! Step 5 of a rebuild: replays the unacknowledged journal of the epoch that served last into the ledger, before the
//! bucket is cleared.

use std::collections::BTreeSet;

use seatkeeper_core::{Change, Event, PoolId, PoolKind};
use seatkeeper_ledger::Error as LedgerError;
use seatkeeper_ledger::buckets::BucketMode;
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
        let &Raised { bucket, epoch, unreplayed, to, .. } = raised;
        let (mut after, mut dropped, mut void) = (None, BTreeSet::new(), 0);
        let mut cut_off = BTreeSet::new();
        loop {
            let entries = source.rebuild_journal(bucket, epoch, after, BATCH_EVENTS_MAX).await?;
            let Some(last) = entries.last() else { break };
            after = Some(last.receipt);
            let of_last_epoch =
                entries.into_iter().map(|entry| entry.event).filter(|event| event.epoch == unreplayed.epoch);
            let mut valid = Vec::new();
            for event in of_last_epoch {
                let is_renewed = is_renewed_by_ledger(to, unreplayed.lower_mode, event.pool.kind);
                if is_renewed && self.may_be_false_end(&event).await? {
                    cut_off.insert(event.pool.clone());
                }
                if cut_off.contains(&event.pool) {
                    void += 1;
                } else {
                    valid.push(Event { epoch, ..event });
                }
            }
            self.apply(valid, &mut dropped).await?;
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
                "unrecorded ends are dropped, with the later events of their pools: nodes renew sessions by the ledger \
                 alone since a fallback began; only answers with `durability = journal` rested on the events"
            );
        }
        Ok(())
    }

    /// Returns whether an event is an end without a record. No other node commits events of the old epoch.
    async fn may_be_false_end(&self, event: &Event) -> Result<bool, Error> {
        match event.change {
            Change::Ended { .. } => Ok(self.ledger.pool_head(&event.pool).await?.seq < event.seq),
            Change::Admitted { .. } | Change::Denied(_) => Ok(false),
        }
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

/// Returns whether nodes may have renewed pools of this kind by the ledger alone since the raise of the epoch.
///
/// In a fallback mode, nodes do so as soon as they know the mode: while the rebuild into the mode `to` waits for its
/// replay, and in `lower_mode`, the mode of a fallback that broke off. An older end
/// without a record would be a false end: the client was told of a full TTL since. So a pool is replayed up to the first
/// such end. Nothing is replayed twice: the ledger knows an event on record by its number.
fn is_renewed_by_ledger(to: BucketMode, lower_mode: Option<BucketMode>, kind: PoolKind) -> bool {
    let is_by_ledger_alone = |mode| matches!(route_for(kind, mode), Route::NodeLocal | Route::Nowhere);
    [Some(to), lower_mode].into_iter().flatten().any(is_by_ledger_alone)
}

#[cfg(test)]
mod tests;
