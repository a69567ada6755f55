//! Tests of the due-index.

use std::collections::BTreeMap;

use proptest::prelude::*;
use seatkeeper_core::RegistryTime;

use super::DueQueue;

const SLOTS: u32 = 12;

proptest! {
    #[test]
    fn the_first_slot_is_due_first_after_any_changes(
        changes in proptest::collection::vec((0..SLOTS, proptest::option::of(0_u64..20)), 0..80)
    ) {
        let (mut queue, mut times) = (DueQueue::default(), BTreeMap::new());
        for (slot, time) in changes {
            match time.map(RegistryTime::from_millis) {
                Some(time) => {
                    times.insert(slot, time);
                    queue.update(slot, |slot| times[&slot]);
                }
                None => {
                    queue.remove(slot, |slot| times[&slot]);
                    times.remove(&slot);
                }
            }
            let first = times.iter().map(|(&slot, &time)| (time, slot)).min();
            prop_assert_eq!(queue.first(), first.map(|(_, slot)| slot));
        }
        while let Some(slot) = queue.first() {
            prop_assert_eq!(times.iter().map(|(&slot, &time)| (time, slot)).min(), Some((times[&slot], slot)));
            queue.remove(slot, |slot| times[&slot]);
            times.remove(&slot);
        }
        prop_assert!(times.is_empty());
    }
}
