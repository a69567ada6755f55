//! Chains of lost regions and their successors.

use seatkeeper_core::{Region, RegistryTime};
use seatkeeper_ledger::homes::Adoption;

use super::leading_to;

fn adoptions(pairs: &[(u8, u8)]) -> Vec<Adoption> {
    let adoption = |(lost, successor): &(u8, u8)| Adoption {
        lost: Region::new(*lost),
        successor: Region::new(*successor),
        admits_from: RegistryTime::from_millis(0),
        is_done: true,
        audit_head: 0,
    };
    pairs.iter().map(adoption).collect()
}

#[test]
fn a_chain_of_successors_leads_to_its_last_region() {
    let known = adoptions(&[(1, 2), (2, 3), (4, 2), (5, 6)]);
    let leading = |region: u8| {
        let mut numbers: Vec<u8> =
            leading_to(&known, Region::new(region)).into_iter().map(Region::number).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!((leading(2), leading(3)), (vec![1, 4], vec![1, 2, 4]));
    assert_eq!((leading(6), leading(1)), (vec![5], vec![]));
}

#[test]
fn a_ring_on_record_ends() {
    let known = adoptions(&[(1, 2), (2, 1)]);
    assert_eq!(leading_to(&known, Region::new(1)), [Region::new(2)]);
}
