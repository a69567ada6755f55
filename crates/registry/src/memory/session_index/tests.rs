//! Tests of the index of sessions.

use std::collections::HashMap;

use proptest::prelude::*;
use seatkeeper_core::{Bucket, Region, RegistryTime, SessionId};

use super::SessionIndex;

fn id(number: u64) -> SessionId {
    SessionId::mint(RegistryTime::default(), Bucket::new(0).unwrap(), Region::default(), number)
}

proptest! {
    #[test]
    fn a_session_is_found_until_its_removal(
        changes in proptest::collection::vec((0_u64..60, 0_u32..9, any::<bool>()), 0..200)
    ) {
        let (mut index, mut pools) = (SessionIndex::default(), HashMap::<SessionId, u32>::new());
        for (number, slot, added) in changes {
            let id = id(number);
            match (added, pools.get(&id).copied()) {
                (true, None) => {
                    pools.insert(id, slot);
                    index.insert(id, slot);
                }
                (false, Some(slot)) => {
                    pools.remove(&id);
                    index.remove(id, slot);
                }
                _ => {}
            }
            for number in 0..60 {
                let id = self::id(number);
                let found = index.find(id, |slot| pools.get(&id) == Some(&slot));
                prop_assert_eq!(found, pools.get(&id).copied());
            }
        }
    }
}
