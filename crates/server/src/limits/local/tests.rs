//! Tests of the counting in memory: exact bursts under concurrency, and bounded memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use super::{FULL_PAUSE, Local, SHARD_KEYS_MAX, SHARDS};
use crate::limits::key::Key;
use crate::limits::rate::{Rate, Verdict};

/// Returns a key of the first shard.
fn key(number: usize) -> Key {
    let mut bytes = [0; 16];
    bytes[1..9].copy_from_slice(&number.to_be_bytes());
    Key(bytes)
}

#[test]
fn of_many_at_once_exactly_the_burst_passes() {
    let (local, passed) = (Local::new(), AtomicUsize::new(0));
    // No use comes back during the test.
    let rate = Rate { burst: 10, interval: 3_600_000_000 };
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..1_000 {
                    let passes = local.count(key(1), rate).passes;
                    passed.fetch_add(usize::from(passes), Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(passed.into_inner(), 10);
    assert!(local.count(key(2), rate).passes, "another's is untouched");
}

#[test]
fn one_of_many_at_once_finds_the_rate_unused() {
    let (local, first) = (Local::new(), AtomicUsize::new(0));
    // No use comes back during the test.
    let rate = Rate { burst: 10, interval: 3_600_000_000 };
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let is_first = local.count_first(key(1), rate, || ()).is_some();
                first.fetch_add(usize::from(is_first), Ordering::Relaxed);
            });
        }
    });
    assert_eq!(first.into_inner(), 1);
}

#[test]
fn a_rate_in_use_at_other_nodes_counts_as_used() {
    let (local, rate) = (Local::new(), Rate { burst: 10, interval: 3_600_000_000 });
    let elsewhere = Verdict { passes: false, now: 5, busy_until: 5 + 10 * rate.interval };
    local.count(key(1), rate);
    local.learn(key(1), elsewhere);
    assert!(!local.count(key(1), rate).passes, "all nodes together are at the limit");
    local.learn(key(2), elsewhere);
    assert!(local.count_first(key(2), rate, || ()).is_some(), "a caller that is not remembered stays so");
}

#[test]
fn a_caller_without_room_is_never_first() {
    let (local, rate) = (Local::new(), Rate::per_minute(2).unwrap());
    for number in 0..SHARD_KEYS_MAX {
        assert!(local.shards[0].lock().count_first(1, key(number), rate).is_some());
    }
    assert!(local.shards[0].lock().count_first(1, key(SHARD_KEYS_MAX), rate).is_none());
}

#[test]
fn a_crowd_takes_no_more_than_its_room_and_frees_nobody() {
    let local = Local::new();
    let rate = Rate::per_minute(2).unwrap();
    let held = key(0);
    assert_eq!([1, 2, 3].map(|at| local.count_at(at, held, rate).passes), [true, true, false]);
    for number in 1..3 * SHARD_KEYS_MAX {
        local.count_at(4, key(number), rate);
    }
    let shard = &local.shards[0];
    assert_eq!(shard.lock().busy_until.len(), SHARD_KEYS_MAX);
    assert!(!local.count_at(5, held, rate).passes, "who was counted still is");
    // Once the crowd's rates are unused again, the shard has room.
    let later = 60_000_000 + FULL_PAUSE;
    local.count_at(later, key(4 * SHARD_KEYS_MAX), rate);
    assert_eq!(shard.lock().busy_until.len(), 1);
    assert_eq!(local.shards.len(), SHARDS);
}
