//! The bound of sessions that a node alone admits.

use seatkeeper_core::{PoolKind, Region};
use seatkeeper_registry::MonotonicClock;
use seatkeeper_registry::memory::MemoryRegistry;

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
