//! The bound of sessions that a node alone admits, and the opening of pools.

use seatkeeper_core::{PoolKind, Region, Span};
use seatkeeper_ledger::Settings;
use seatkeeper_registry::memory::MemoryRegistry;
use seatkeeper_registry::{ManualClock, MonotonicClock};

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

/// A node may be suspended in the check, or in the following reading of the ledger.
#[tokio::test]
async fn a_pool_opens_by_a_recent_check_and_a_recent_reading_of_the_ledger_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let ledger = Ledger::open(Settings::new(dir.path())).await.expect("a ledger");
    let pool = PoolId::new(PoolKind::Capacity, "acme".into(), "ann");
    for (seconds, is_open) in [(30, true), (31, false)] {
        let clock = Arc::new(ManualClock::at(RegistryTime::from_millis(1)));
        let registry = Arc::new(MemoryRegistry::new(1, Region::new(1), 8, Arc::clone(&clock)));
        let backend = Backend::lasting(registry, Commits::new(8));
        let check = async {
            clock.advance(Span::from_secs(seconds));
            Ok(())
        };
        backend.open(&ledger, &pool, None, check).await.expect("the ledger can be read");
        assert_eq!(backend.registry.view(&pool, 1).await.is_ok(), is_open, "after {seconds} s");
    }
    ledger.close().await;
}
