//! Events of the epoch that served last are void once nodes may have renewed sessions by the ledger alone.

use seatkeeper_core::PoolKind;
use seatkeeper_ledger::buckets::{BucketMode, Unreplayed};

use super::is_valid;

/// Returns the kinds of pools whose events are replayed.
fn replayed(lower_mode: Option<BucketMode>) -> Vec<PoolKind> {
    let unreplayed = Unreplayed { epoch: 7, mode: BucketMode::Registry, lower_mode };
    let all = [PoolKind::License, PoolKind::Subscriber, PoolKind::Group, PoolKind::Capacity];
    all.into_iter().filter(|kind| is_valid(unreplayed, *kind)).collect()
}

#[test]
fn every_event_is_replayed_if_no_fallback_broke_off() {
    let all = [PoolKind::License, PoolKind::Subscriber, PoolKind::Group, PoolKind::Capacity];
    assert_eq!(replayed(None), all);
}

/// Over a ledger in SQLite, Redis has the capacities as well. A capacity has no heartbeats, so its end is never false.
#[test]
fn after_a_fallback_that_broke_off_only_pools_with_a_registry_are_replayed() {
    for mode in [BucketMode::Ledger, BucketMode::Allow] {
        assert_eq!(replayed(Some(mode)), [PoolKind::License, PoolKind::Capacity], "{mode:?}");
    }
    assert_eq!(replayed(Some(BucketMode::Deny)), [PoolKind::Capacity]);
}
