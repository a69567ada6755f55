//! Halves of a large batch, which two transactions commit at once. No bucket is in both halves, so neither transaction
//! waits for the other.

use seatkeeper_core::Event;

/// Sorts events by half. The events of a pool keep their order.
pub(super) fn sort(events: &mut [Event]) {
    events.sort_by_key(is_in_second);
}

/// Returns both halves of events that are sorted by half.
pub(super) fn of_sorted(events: &[Event]) -> (&[Event], &[Event]) {
    events.split_at(events.partition_point(|event| !is_in_second(event)))
}

fn is_in_second(event: &Event) -> bool {
    event.pool.bucket().number() % 2 == 1
}

#[cfg(test)]
mod tests {
    use seatkeeper_core::{
        BucketSet, Change, Denial, Denied, Holder, Origin, PoolId, PoolKind, RegistryTime, Seats, TenantId,
    };

    use super::*;

    const POOLS: u64 = 100;
    const EVENTS_OF_A_POOL: u64 = 3;

    /// Returns the events of many pools, in the order of a journal: pools alternate.
    fn events() -> Vec<Event> {
        let event = |seq, pool: u64| {
            let (pool, holder) = (format!("pool {pool}"), Holder::from("m"));
            let denied = Denied { holder, why: Denial::EntitlementClosed, count: 1, folded: false };
            Event {
                pool: PoolId::new(PoolKind::License, TenantId::from("t"), pool),
                seq,
                epoch: 1,
                at: RegistryTime::from_millis(1),
                live: 0,
                limit: Seats(0),
                version: 0,
                origin: Origin::SYSTEM,
                change: Change::Denied(denied),
            }
        };
        (1..=EVENTS_OF_A_POOL).flat_map(|seq| (0..POOLS).map(move |pool| event(seq, pool))).collect()
    }

    fn buckets(events: &[Event]) -> BucketSet {
        events.iter().map(|event| event.pool.bucket()).collect()
    }

    #[test]
    fn halves_share_no_bucket_and_keep_the_order_of_each_pool() {
        let mut sorted = events();
        sort(&mut sorted);
        let (first, second) = of_sorted(&sorted);
        assert!(!first.is_empty() && !second.is_empty());
        assert_eq!(first.len() + second.len(), (POOLS * EVENTS_OF_A_POOL) as usize);
        assert!(buckets(first).iter().all(|bucket| !buckets(second).contains(bucket)));
        for pool in events().iter().take(POOLS as usize).map(|event| &event.pool) {
            let seqs: Vec<_> =
                sorted.iter().filter(|event| event.pool == *pool).map(|event| event.seq).collect();
            assert_eq!(seqs, (1..=EVENTS_OF_A_POOL).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_half_may_be_empty() {
        let mut events = events();
        events.retain(|event| !is_in_second(event));
        let (first, second) = of_sorted(&events);
        assert_eq!((first.len(), second.len()), (events.len(), 0));
    }
}
