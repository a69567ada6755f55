//! Tests of the join: each violation is found, and a sound trail is proven.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use super::*;

const A: Region = Region::new(1);
const B: Region = Region::new(2);
const C: Region = Region::new(3);

fn ann() -> Subscriber {
    (TenantId::new("acme"), UserId::new("ann"))
}

fn pool() -> PoolId {
    let (tenant, user) = ann();
    PoolId::new(PoolKind::Subscriber, tenant, user.as_str())
}

fn moved(version: u64, peer: Region, seq: u64, peer_seq: Option<u64>) -> HomeMove {
    let kind = peer_seq.map_or(HomeMoveKind::Left, |peer_seq| HomeMoveKind::Arrived { peer_seq });
    HomeMove { subscriber: ann(), version, peer, seq, kind }
}

fn adopted(version: u64, peer: Region, peer_seq: u64) -> HomeMove {
    let kind = HomeMoveKind::Adopted { peer_seq: Some(peer_seq) };
    HomeMove { kind, ..moved(version, peer, 0, None) }
}

fn join(regions: &[(Region, Vec<HomeMove>)]) -> Result<HomeTrails, RegionBreach> {
    HomeTrails::join(regions, &[])
}

/// Joins the records after the loss of region A, which B adopts.
fn join_after_loss(regions: &[(Region, Vec<HomeMove>)]) -> Result<HomeTrails, RegionBreach> {
    HomeTrails::join(regions, &[(A, B)])
}

fn assert_admitted_away(mut trails: HomeTrails, region: Region, seq: u64) {
    let breach = trails.admission(region, pool(), seq).unwrap_err();
    assert_eq!(breach, RegionBreach::AdmittedAway { user: ann().1, region, seq });
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
    let mut trails = join(&trail()).unwrap();
    for (region, seq) in [(A, 1), (A, 5), (B, 1), (B, 4), (C, 1), (C, 9)] {
        trails.admission(region, pool(), seq).unwrap();
    }
    assert_eq!(trails.finish(), RegionProof { regions: 3, moves: 2, admissions: 6 });
}

#[test]
fn an_admission_after_the_handover_or_in_no_home_is_found() {
    for (region, seq) in [(A, 6), (B, 5), (Region::new(4), 1)] {
        assert_admitted_away(join(&trail()).unwrap(), region, seq);
    }
}

#[test]
fn an_unmoved_subscriber_is_admitted_by_one_region() {
    let mut trails = join(&[(A, Vec::new()), (B, Vec::new())]).unwrap();
    trails.admission(A, pool(), 1).unwrap();
    assert!(trails.admission(B, pool(), 1).is_err());
}

#[test]
fn a_version_taken_over_twice_is_found() {
    let mut regions = trail();
    regions[2].1 = vec![moved(2, A, 0, Some(5))];
    assert!(matches!(join(&regions), Err(RegionBreach::TwoArrivals { version: 2, .. })));
}

#[test]
fn records_that_do_not_join_are_found() {
    let mut lost = trail();
    lost[2].1.clear();
    let mut differs = trail();
    differs[2].1 = vec![moved(3, B, 0, Some(5))];
    let mut begins_late = trail();
    begins_late[1].1.remove(0);
    let without_origin = vec![(B, vec![moved(3, C, 4, None)]), (C, vec![moved(3, B, 0, Some(4))])];
    for regions in [lost, differs, begins_late, without_origin] {
        assert!(matches!(join(&regions), Err(RegionBreach::Unjoined { .. })), "{regions:?}");
    }
}

#[test]
fn an_adopted_home_ends_the_tenure_of_the_lost_region() {
    let regions = [(A, Vec::new()), (B, vec![adopted(2, A, 5)])];
    let mut trails = join_after_loss(&regions).unwrap();
    for (region, seq) in [(A, 5), (B, 1)] {
        trails.admission(region, pool(), seq).unwrap();
    }
    for (region, seq) in [(A, 6), (C, 1)] {
        assert_admitted_away(join_after_loss(&regions).unwrap(), region, seq);
    }
}

/// The restored ledger of the lost region A is older than a move to C and the move back.
fn moved_there_and_back() -> [(Region, Vec<HomeMove>); 3] {
    [(A, Vec::new()), (B, vec![adopted(4, A, 5)]), (C, vec![moved(2, A, 0, Some(7)), moved(3, A, 3, None)])]
}

#[test]
fn moves_after_the_backup_join_through_the_adoption() {
    let mut regions = moved_there_and_back();
    let mut trails = join_after_loss(&regions).unwrap();
    for (region, seq) in [(A, 5), (C, 3), (B, 1)] {
        trails.admission(region, pool(), seq).unwrap();
    }
    regions[1].1.clear();
    assert!(matches!(join_after_loss(&regions), Err(RegionBreach::Unjoined { version: 3, .. })));
}

#[test]
fn an_admission_beside_the_successor_is_found() {
    // The region that the home left for the lost region, and the lost region after the adoption has read its ledger.
    for (region, seq) in [(C, 4), (A, 6)] {
        assert_admitted_away(join_after_loss(&moved_there_and_back()).unwrap(), region, seq);
    }
}

#[test]
fn an_adoption_of_a_home_that_another_region_never_gave_away_is_found() {
    let mut regions = moved_there_and_back();
    regions[2].1.pop();
    assert!(matches!(join_after_loss(&regions), Err(RegionBreach::Unjoined { version: 4, .. })));
}

/// The home began in C and moved to A after the backup of A.
#[test]
fn a_home_that_came_to_the_lost_region_after_the_backup_joins() {
    let regions = [(A, Vec::new()), (B, vec![adopted(3, A, 0)]), (C, vec![moved(2, A, 6, None)])];
    let mut trails = join_after_loss(&regions).unwrap();
    for (region, seq) in [(C, 6), (B, 1)] {
        trails.admission(region, pool(), seq).unwrap();
    }
    for (region, seq) in [(C, 7), (A, 1)] {
        assert_admitted_away(join_after_loss(&regions).unwrap(), region, seq);
    }
}

/// A took the home over after its backup, and gave the home to C before the loss.
#[test]
fn a_home_that_the_lost_region_gave_away_joins_without_its_records() {
    let regions = [(A, Vec::new()), (B, vec![moved(2, A, 4, None)]), (C, vec![moved(3, A, 0, Some(2))])];
    let mut trails = join_after_loss(&regions).unwrap();
    for (region, seq) in [(B, 4), (C, 1)] {
        trails.admission(region, pool(), seq).unwrap();
    }
    for (region, seq) in [(B, 5), (A, 1)] {
        assert_admitted_away(join_after_loss(&regions).unwrap(), region, seq);
    }
    // No record of a living region may be missing.
    assert!(matches!(join(&regions), Err(RegionBreach::Unjoined { version: 2, .. })));
}

/// The lost region A took the home over from C. The answer was lost, and C told the successor B of the same move.
fn answer_lost(left: u64) -> [(Region, Vec<HomeMove>); 3] {
    let lost = vec![moved(2, C, 0, Some(5))];
    [(A, lost), (B, vec![adopted(3, A, 4)]), (C, vec![moved(left, B, 6, None)])]
}

#[test]
fn a_move_that_the_lost_region_took_over_without_an_answer_joins_through_the_adoption() {
    let mut trails = join_after_loss(&answer_lost(2)).unwrap();
    for (region, seq) in [(C, 5), (A, 4), (B, 1)] {
        trails.admission(region, pool(), seq).unwrap();
    }
    for (region, seq) in [(C, 6), (A, 5)] {
        assert_admitted_away(join_after_loss(&answer_lost(2)).unwrap(), region, seq);
    }
    // The adoption is no later home than the departure's target.
    assert!(matches!(join_after_loss(&answer_lost(3)), Err(RegionBreach::Unjoined { version: 3, .. })));
}

#[test]
fn a_home_that_was_adopted_without_its_ledger_is_bounded_by_the_loss_alone() {
    let unread = HomeMove { kind: HomeMoveKind::Adopted { peer_seq: None }, ..adopted(2, A, 0) };
    let mut trails = join_after_loss(&[(A, Vec::new()), (B, vec![unread])]).unwrap();
    for (region, seq) in [(A, 9), (B, 1)] {
        trails.admission(region, pool(), seq).unwrap();
    }
}

/// A is restored after event 3, and has forgotten the move after event 5. The move begins again after event 2, and ends after
/// event `seq`.
fn restored(seq: u64) -> Vec<(Region, Vec<HomeMove>)> {
    let mut trail = trail();
    let forgotten = HomeMove { kind: HomeMoveKind::Forgotten, ..moved(2, B, 2, None) };
    trail[0].1 = vec![forgotten, moved(2, B, seq, None)];
    trail
}

#[test]
fn a_forgotten_move_ends_the_tenure_of_the_restored_region() {
    let mut trails = join(&restored(3)).unwrap();
    for (region, seq) in [(A, 3), (B, 1), (B, 4), (C, 9)] {
        trails.admission(region, pool(), seq).unwrap();
    }
    assert_admitted_away(join(&restored(3)).unwrap(), A, 4);
    // The numbers of the events before the move count as well.
    assert_admitted_away(join(&restored(9)).unwrap(), A, 6);
    let mut begun = restored(3);
    begun[0].1.truncate(1);
    assert_admitted_away(join(&begun).unwrap(), A, 3);
}

#[test]
fn a_forgotten_move_leads_to_the_last_of_several_homes() {
    let mut trail = restored(3);
    for moved in &mut trail[0].1 {
        (moved.version, moved.peer) = (3, C);
    }
    join(&trail).unwrap().admission(A, pool(), 3).unwrap();
    assert_admitted_away(join(&trail).unwrap(), A, 4);
}

/// Admits to one license in each of `regions`, in turn, and returns the first breach.
fn admit_to_license(regions: &[Region], adopted: &[(Region, Region)]) -> Result<(), (Region, Region)> {
    let mut trails = HomeTrails::join(&[], adopted).unwrap();
    for region in regions {
        let license = PoolId::new(PoolKind::License, TenantId::new("acme"), "license");
        match trails.admission(*region, license, 1) {
            Ok(()) => {}
            Err(RegionBreach::TwoAnchors { first, second, .. }) => return Err((first, second)),
            Err(other) => panic!("{other}"),
        }
    }
    Ok(())
}

#[test]
fn a_license_is_admitted_to_by_one_region_and_its_successors() {
    assert_eq!(admit_to_license(&[A, A], &[]), Ok(()));
    assert_eq!(admit_to_license(&[A, B], &[]), Err((A, B)));
    // A was lost first, and then B. The ledgers may be read in any order.
    let adopted = [(A, B), (B, C)];
    for order in [[A, B, C], [A, C, B], [B, A, C], [B, C, A], [C, A, B], [C, B, A]] {
        assert_eq!(admit_to_license(&order, &adopted), Ok(()), "{order:?}");
    }
    // C adopted both, so neither of the two was the anchor after the other.
    let adopted = [(A, C), (B, C)];
    for order in [[A, B, C], [A, C, B], [B, A, C], [B, C, A], [C, A, B], [C, B, A]] {
        assert!(admit_to_license(&order, &adopted).is_err(), "{order:?}");
    }
}
