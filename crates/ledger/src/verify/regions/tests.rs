//! Tests of the join: each violation is found, and a sound trail is proven.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use super::*;

const A: Region = Region::new(1);
const B: Region = Region::new(2);
const C: Region = Region::new(3);

fn ann() -> Subscriber {
    (TenantId::new("acme"), UserId::new("ann"))
}

fn moved(version: u64, peer: Region, seq: u64, peer_seq: Option<u64>) -> HomeMove {
    HomeMove { subscriber: ann(), version, peer, seq, peer_seq, is_adopted: false }
}

fn adopted(version: u64, peer: Region, peer_seq: u64) -> HomeMove {
    HomeMove { is_adopted: true, ..moved(version, peer, 0, Some(peer_seq)) }
}

/// The home moves from A, after event 5, to B, and after event 4 of B to C.
fn trail() -> Vec<(Region, Vec<HomeMove>)> {
    vec![
        (A, vec![moved(2, B, 6, None)]),
        (B, vec![moved(2, A, 0, Some(5)), moved(3, C, 4, None)]),
        (C, vec![moved(3, B, 0, Some(4))]),
    ]
}

#[test]
fn admissions_in_the_home_of_their_moment_are_proven() {
    let mut trails = HomeTrails::join(&trail()).unwrap();
    for (region, seq) in [(A, 1), (A, 5), (B, 1), (B, 4), (C, 1), (C, 9)] {
        trails.admission(region, ann(), seq).unwrap();
    }
    assert_eq!(trails.finish(), RegionProof { regions: 3, moves: 2, admissions: 6 });
}

#[test]
fn an_admission_after_the_handover_or_in_no_home_is_found() {
    for (region, seq) in [(A, 6), (B, 5), (Region::new(4), 1)] {
        let breach = HomeTrails::join(&trail()).unwrap().admission(region, ann(), seq).unwrap_err();
        assert_eq!(breach, RegionBreach::AdmittedAway { user: ann().1, region, seq });
    }
}

#[test]
fn an_unmoved_subscriber_is_admitted_by_one_region() {
    let mut trails = HomeTrails::join(&[(A, Vec::new()), (B, Vec::new())]).unwrap();
    trails.admission(A, ann(), 1).unwrap();
    assert!(trails.admission(B, ann(), 1).is_err());
}

#[test]
fn a_version_taken_over_twice_is_found() {
    let mut regions = trail();
    regions[2].1 = vec![moved(2, A, 0, Some(5))];
    assert!(matches!(HomeTrails::join(&regions), Err(RegionBreach::TwoArrivals { version: 2, .. })));
}

#[test]
fn records_that_do_not_join_are_found() {
    let mut lost = trail();
    lost[2].1.clear();
    let mut differs = trail();
    differs[2].1 = vec![moved(3, B, 0, Some(5))];
    let mut begins_late = trail();
    begins_late[1].1.remove(0);
    for regions in [lost, differs, begins_late] {
        assert!(matches!(HomeTrails::join(&regions), Err(RegionBreach::Unjoined { .. })), "{regions:?}");
    }
}

#[test]
fn an_adopted_home_ends_the_tenure_of_the_lost_region() {
    let regions = [(A, Vec::new()), (B, vec![adopted(2, A, 5)])];
    let mut trails = HomeTrails::join(&regions).unwrap();
    for (region, seq) in [(A, 5), (B, 1)] {
        trails.admission(region, ann(), seq).unwrap();
    }
    assert!(trails.admission(A, ann(), 6).is_err());
    assert!(trails.admission(C, ann(), 1).is_err());
}

/// The restored ledger is older than a move to C and the move back to the lost region A.
#[test]
fn moves_after_the_backup_join_through_the_adoption() {
    let regions = [
        (A, Vec::new()),
        (B, vec![adopted(4, A, 5)]),
        (C, vec![moved(2, A, 0, Some(7)), moved(3, A, 3, None)]),
    ];
    let mut trails = HomeTrails::join(&regions).unwrap();
    for (region, seq) in [(A, 5), (C, 3), (B, 1)] {
        trails.admission(region, ann(), seq).unwrap();
    }
    let mut without = regions;
    without[1].1.clear();
    assert!(matches!(HomeTrails::join(&without), Err(RegionBreach::Unjoined { version: 3, .. })));
}
