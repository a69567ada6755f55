//! The bound of sessions that a node alone admits, and the opening of pools.

use std::sync::atomic::AtomicU64;

use seatkeeper_core::{PoolKind, Region, Span};
use seatkeeper_ledger::Settings;
use seatkeeper_registry::memory::MemoryRegistry;
use seatkeeper_registry::{MonotonicClock, TimeSource};

use super::*;

#[test]
fn a_node_alone_holds_so_many_sessions_and_has_room_again_after_an_end() {
    let clock = MonotonicClock::starting_at(RegistryTime::from_millis(1));
    let registry = Arc::new(MemoryRegistry::new(1, Region::new(1), 8, clock));
    let backend = Backend::node_local(registry, Commits::new(8));
    let bucket = PoolId::new(PoolKind::License, "acme".into(), "any").bucket();
    backend.count_recorded(NODE_LOCAL_SESSIONS_MAX - 1, 0);
    assert!(backend.check_room(bucket).is_ok());
    backend.count_recorded(1, 0);
    assert!(matches!(backend.check_room(bucket), Err(RegistryError::NotServing { .. })));
    backend.count_recorded(0, 1);
    assert!(backend.check_room(bucket).is_ok());
}

/// A clock on which `step` passes between two readings.
struct Stepping {
    now: AtomicU64,
    step: Span,
}

impl TimeSource for Stepping {
    fn now(&self) -> RegistryTime {
        RegistryTime::from_millis(self.now.fetch_add(self.step.as_millis(), Relaxed))
    }
}

#[tokio::test]
async fn a_pool_opens_by_a_recent_reading_of_the_ledger_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = Ledger::open(Settings::new(dir.path())).await.expect("a ledger");
    let pool = PoolId::new(PoolKind::Capacity, "acme".into(), "ann");
    for (seconds, is_open) in [(1, true), (31, false)] {
        let clock = Stepping { now: AtomicU64::new(1), step: Span::from_secs(seconds) };
        let registry = Arc::new(MemoryRegistry::new(1, Region::new(1), 8, clock));
        let backend = Backend::lasting(registry, Commits::new(8));
        backend.open(&ledger, &pool, None).await.expect("the ledger can be read");
        assert_eq!(backend.registry.view(&pool, 1).await.is_ok(), is_open, "after {seconds} s");
    }
    ledger.close().await;
}
