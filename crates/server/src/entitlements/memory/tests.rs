//! Tests of expiry, invalidation and overtaken reads.

use super::*;

const FOR_AN_HOUR: Duration = Duration::from_secs(3_600);

fn memory(remember_for: Duration) -> Memory<&'static str, u32> {
    Memory::new(10, remember_for)
}

fn remember(memory: &Memory<&'static str, u32>, key: &'static str, value: u32) {
    memory.remember(memory.reading(), key, &Arc::new(value));
}

#[test]
fn what_is_remembered_counts_until_it_is_forgotten() {
    let memory = memory(FOR_AN_HOUR);
    remember(&memory, "ann", 1);
    remember(&memory, "bob", 2);
    memory.forget_one(&"ann");
    assert_eq!((memory.get(&"ann").as_deref(), memory.get(&"bob").as_deref()), (None, Some(&2)));
    remember(&memory, "ann", 3);
    memory.forget(|_, value| *value == 3);
    assert_eq!((memory.get(&"ann").as_deref(), memory.get(&"bob").as_deref()), (Some(&3), None));
}

#[test]
fn nothing_is_remembered_for_longer_than_it_may_be() {
    let memory = memory(Duration::ZERO);
    remember(&memory, "ann", 1);
    assert_eq!(memory.get(&"ann"), None);
    assert!(memory.remembered.is_empty(), "nothing is stored either");
}

#[test]
fn a_read_that_a_change_overtook_is_not_remembered() {
    let memory = memory(FOR_AN_HOUR);
    let overtaken = memory.reading();
    memory.forget_one(&"ann");
    memory.remember(overtaken, "ann", &Arc::new(1));
    assert_eq!(memory.get(&"ann"), None, "a value read before the change must not be stored");
    remember(&memory, "ann", 4);
    assert_eq!(memory.get(&"ann").as_deref(), Some(&4));
}
