//! Tests of pool ids and buckets.

use std::collections::HashSet;

use super::{BUCKETS, Bucket, PoolId, PoolKind};
use crate::NotNamed;

fn pool(kind: PoolKind, tenant: &str, name: &str) -> PoolId {
    PoolId::new(kind, tenant.into(), name)
}

#[test]
fn the_bucket_of_a_pool_never_changes() {
    // Computed independently. Session ids on record contain the bucket numbers.
    let golden = [
        (pool(PoolKind::License, "acme", "photo"), 110),
        (pool(PoolKind::Subscriber, "acme", "photo"), 221),
        (pool(PoolKind::Capacity, "acme", "photo"), 220),
        (pool(PoolKind::License, "", "ab"), 146),
        (pool(PoolKind::License, "a", "b"), 219),
        (pool(PoolKind::License, "ab", ""), 182),
        (pool(PoolKind::License, "globex", "3f2504e0-4f89-11d3-9a0c-0305e82c3301"), 250),
        (pool(PoolKind::Subscriber, "tv", "ünïcode"), 105),
    ];
    for (pool, bucket) in golden {
        assert_eq!(pool.bucket().number(), bucket, "{pool:?}");
    }
}

#[test]
fn pools_spread_over_all_buckets() {
    let buckets: HashSet<_> =
        (0..10_000).map(|n| pool(PoolKind::License, "acme", &n.to_string()).bucket()).collect();
    assert_eq!(buckets.len(), usize::from(BUCKETS));
}

#[test]
fn there_are_as_many_buckets_as_are_counted() {
    let all: Vec<_> = Bucket::all().map(Bucket::number).collect();
    assert_eq!(all, (0..BUCKETS).collect::<Vec<_>>());
    assert_eq!(Bucket::new(BUCKETS - 1).map(Bucket::number), Some(255));
    assert_eq!(Bucket::new(BUCKETS), None);
}

#[test]
fn a_kind_reads_back_from_its_name() {
    for (kind, name) in [
        (PoolKind::License, "license"),
        (PoolKind::Subscriber, "subscriber"),
        (PoolKind::Capacity, "capacity"),
        (PoolKind::Group, "group"),
    ] {
        assert_eq!(kind.as_str(), name);
        assert_eq!(name.parse(), Ok(kind));
    }
    assert_eq!("License".parse::<PoolKind>(), Err(NotNamed("not a kind of pool")));
}

#[test]
fn a_pool_shows_its_whole_identity() {
    assert_eq!(format!("{:?}", pool(PoolKind::License, "acme", "photo")), "license/acme/photo");
}
