//! Halves of a large batch, which two transactions commit at once. No bucket is in both halves, so neither transaction
//! waits for the other.

use seatkeeper_registry::JournalEntry;

/// Splits the entries of a batch by bucket. The entries of a bucket keep their order.
pub(super) fn split(entries: Vec<JournalEntry>) -> (Vec<JournalEntry>, Vec<JournalEntry>) {
    entries.into_iter().partition(|entry| entry.receipt.bucket.number() % 2 == 0)
}

#[cfg(test)]
mod tests {
    use seatkeeper_core::{
        BucketSet, Change, Denial, Denied, Event, Holder, Origin, PoolId, PoolKind, RegistryTime, Seats,
        TenantId,
    };
    use seatkeeper_registry::Receipt;

    use super::*;

    const POOLS: u64 = 100;
    const EVENTS_OF_A_POOL: u64 = 3;

    /// Returns the entries of many pools, in the order of a journal: pools alternate.
    fn entries() -> Vec<JournalEntry> {
        let entry = |seq, pool: u64| {
            let (pool, holder) = (format!("pool {pool}"), Holder::from("m"));
            let denied = Denied { holder, why: Denial::EntitlementClosed, count: 1, folded: false };
            let event = Event {
                pool: PoolId::new(PoolKind::License, TenantId::from("t"), pool),
                seq,
                epoch: 1,
                at: RegistryTime::from_millis(1),
                live: 0,
                limit: Seats(0),
                version: 0,
                origin: Origin::SYSTEM,
                change: Change::Denied(denied),
            };
            let receipt = Receipt { bucket: event.pool.bucket(), epoch: 1, position: seq };
            JournalEntry { receipt, event }
        };
        (1..=EVENTS_OF_A_POOL).flat_map(|seq| (0..POOLS).map(move |pool| entry(seq, pool))).collect()
    }

    fn buckets(entries: &[JournalEntry]) -> BucketSet {
        entries.iter().map(|entry| entry.receipt.bucket).collect()
    }

    #[test]
    fn halves_share_no_bucket_and_keep_the_order_of_each_pool() {
        let (first, second) = split(entries());
        assert!(!first.is_empty() && !second.is_empty());
        assert_eq!(first.len() + second.len(), (POOLS * EVENTS_OF_A_POOL) as usize);
        assert!(buckets(&first).iter().all(|bucket| !buckets(&second).contains(bucket)));
        for pool in entries().iter().take(POOLS as usize).map(|entry| &entry.event.pool) {
            let events = first.iter().chain(&second).map(|entry| &entry.event);
            let seqs: Vec<_> = events.filter(|event| event.pool == *pool).map(|event| event.seq).collect();
            assert_eq!(seqs, (1..=EVENTS_OF_A_POOL).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_half_may_be_empty() {
        let bucket = entries()[0].receipt.bucket;
        let of_bucket: Vec<_> =
            entries().into_iter().filter(|entry| entry.receipt.bucket == bucket).collect();
        let (first, second) = split(of_bucket.clone());
        assert!(first.is_empty() || second.is_empty());
        assert_eq!([first, second].concat(), of_bucket);
    }
}
