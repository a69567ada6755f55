//! Ends of the epoch that served last may be false ends once nodes may have renewed sessions by the ledger alone.

use seatkeeper_core::PoolKind;
use seatkeeper_ledger::buckets::BucketMode;

use super::is_renewed_by_ledger;

const ALL: [PoolKind; 4] = [PoolKind::License, PoolKind::Subscriber, PoolKind::Group, PoolKind::Capacity];

/// Returns the kinds of pools with every event replayed.
fn replayed(to: BucketMode, lower_mode: Option<BucketMode>) -> Vec<PoolKind> {
    ALL.into_iter().filter(|kind| !is_renewed_by_ledger(to, lower_mode, *kind)).collect()
}

#[test]
fn every_event_is_replayed_if_a_registry_served_all_the_time() {
    assert_eq!(replayed(BucketMode::Registry, None), ALL);
}

/// Over a ledger in SQLite, Redis has the capacities as well. A capacity has no heartbeats, so its end is never false.
#[test]
fn since_a_fallback_only_ends_of_pools_with_a_registry_are_replayed() {
    let replayed_after = |mode| {
        let (begun, broken_off) = (replayed(mode, None), replayed(BucketMode::Registry, Some(mode)));
        assert_eq!(begun, broken_off, "{mode:?}");
        begun
    };
    for mode in [BucketMode::Ledger, BucketMode::Allow] {
        assert_eq!(replayed_after(mode), [PoolKind::License, PoolKind::Capacity], "{mode:?}");
    }
    assert_eq!(replayed_after(BucketMode::Deny), [PoolKind::Capacity]);
}
