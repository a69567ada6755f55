//! Step 5 of a rebuild: replays the unacknowledged journal of the epoch that served last into the ledger, before the
//! bucket is cleared.

use std::collections::{BTreeSet, HashMap};

use seatkeeper_core::{Change, Event, PoolId, PoolKind, RegistryTime};
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
    /// events continue the ledger's record. Returns the time of the latest replayed event, zero without events.
    pub(super) async fn replay_old_epoch(
        &self,
        source: &dyn Rebuild,
        raised: &Raised,
    ) -> Result<RegistryTime, Error> {
        let &Raised { bucket, epoch, unreplayed, to, .. } = raised;
        let mut latest = RegistryTime::default();
        let (mut after, mut dropped) = (None, BTreeSet::new());
        let (mut cut_off, mut cut_off_events) = (BTreeSet::new(), 0);
        loop {
            let entries = source.rebuild_journal(bucket, epoch, after, BATCH_EVENTS_MAX).await?;
            let Some(last) = entries.last() else { break };
            after = Some(last.receipt);
            let of_last_epoch =
                entries.into_iter().map(|entry| entry.event).filter(|event| event.epoch == unreplayed.epoch);
            let (mut valid, mut recorded) = (Vec::new(), HashMap::new());
            for event in of_last_epoch {
                let may_be_false = matches!(event.change, Change::Ended { .. })
                    && is_renewed_by_ledger(to, unreplayed.lower_mode, event.pool.kind);
                if may_be_false
                    && !cut_off.contains(&event.pool)
                    && self.recorded_seq(&event.pool, &mut recorded).await? < event.seq
                {
                    cut_off.insert(event.pool.clone());
                }
                if cut_off.contains(&event.pool) {
                    cut_off_events += 1;
                } else {
                    latest = latest.max(event.at);
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
        if cut_off_events > 0 {
            tracing::warn!(
                bucket = bucket.number(),
                events = cut_off_events,
                "unrecorded ends are dropped, with the later events of their pools: nodes renew sessions by the ledger \
                 alone since a fallback began; only answers with `durability = journal` rested on the events"
            );
        }
        Ok(latest)
    }

    /// Returns the number of a pool's last event on record, from `known` if possible. No other node commits events of the
    /// old epoch.
    async fn recorded_seq(&self, pool: &PoolId, known: &mut HashMap<PoolId, u64>) -> Result<u64, Error> {
        if let Some(&seq) = known.get(pool) {
            return Ok(seq);
        }
        let seq = self.ledger.pool_seq(pool).await?;
        known.insert(pool.clone(), seq);
        Ok(seq)
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
/// replay, and in `lower_mode`, the mode of a fallback that broke off. An older end without a record would be a false end:
/// the client was told of a full TTL since. So a pool is replayed up to the first such end.
fn is_renewed_by_ledger(to: BucketMode, lower_mode: Option<BucketMode>, kind: PoolKind) -> bool {
    let is_by_ledger_alone = |mode| matches!(route_for(kind, mode), Route::NodeLocal | Route::Nowhere);
    [Some(to), lower_mode].into_iter().flatten().any(is_by_ledger_alone)
}

#[cfg(test)]
mod tests;
